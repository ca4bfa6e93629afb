"""A chain of one's own: an L1 for tests, and the files that an L2 on top of it starts from.

Sequencing, batching and derivation need no contract on the L1. See `factory.py` for what a
proposer needs there.
"""

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from opstack import jsonrpc
from opstack.chainkit import chainkit
from opstack.programs import OpStackPrograms
from opstack.wallet import DEVELOPER

L1_CHAIN_ID = 1337
"""The chain that `geth --dev` makes."""
L2_CHAIN_ID = 777
BLOCK_TIME = 2
GAS_LIMIT = 30_000_000
_MESSAGE_PASSER = "0x4200000000000000000000000000000000000016"
_FORKS_BY_BLOCK = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg"),
    *("istanbul", "muirGlacier", "berlin", "london", "arrowGlacier", "grayGlacier"),
    *("mergeNetsplit", "bedrock"),
)
_FEES = {"eip1559Elasticity": 6, "eip1559Denominator": 50, "eip1559DenominatorCanyon": 250}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFiles:
    """What the programs of an L2 read when they start."""

    genesis: bytes
    """For `geth init`."""
    rollup: bytes
    """For op-node's `--rollup.config`."""
    l1_chain_config: bytes
    """For op-node's `--rollup.l1-chain-config`: it knows no L1 of ours."""
    jwt: bytes
    """What op-geth and op-node share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The L1 block that an L2 begins at."""

    hash: str
    number: int
    timestamp: int


def l1_arguments(
    *, port: int = 8545, address: str = "0.0.0.0", period: int = 2, data: str = ""
) -> list[str]:
    """Arguments of geth as an L1 that makes a block every `period` seconds.

    Without a folder for its data it forgets everything when it ends, and needs a `/tmp` to write.
    """
    return [
        "--dev",
        f"--dev.period={period}",
        # A block that is built before geth waits for it is never noticed: build it again and again.
        "--miner.recommit=100ms",
        *([f"--datadir={data}"] if data else []),
        "--http",
        f"--http.addr={address}",
        f"--http.port={port}",
        "--http.api=eth,net,web3,debug,admin,txpool",
        "--http.vhosts=*",
        "--authrpc.port=0",
        "--nodiscover",
        "--maxpeers=0",
        "--ipcdisable",
    ]


async def chain_files(
    l1_url: str,
    programs: OpStackPrograms,
    *,
    batcher_address: str,
    l2_chain_id: int = L2_CHAIN_ID,
) -> ChainFiles:
    """The files of a chain that begins at the newest block of an L1."""
    anchor = await newest_block(l1_url)
    genesis = msgspec.json.encode(genesis_of(anchor, l2_chain_id))
    l2_hash = await chainkit(programs, "genesis-hash", stdin=genesis)
    rollup = rollup_of(anchor, l2_hash, batcher_address, l2_chain_id)
    l1_config = await jsonrpc.call(l1_url, "debug_chainConfig")
    return ChainFiles(
        genesis=genesis,
        rollup=msgspec.json.encode(rollup),
        l1_chain_config=msgspec.json.encode(l1_config),
        jwt=secrets.token_hex(32).encode(),
    )


async def newest_block(l1_url: str) -> Anchor:
    """The head of an L1."""
    block = await jsonrpc.call(l1_url, "eth_getBlockByNumber", "latest", False)
    return Anchor(
        hash=block["hash"], number=int(block["number"], 16), timestamp=int(block["timestamp"], 16)
    )


def genesis_of(anchor: Anchor, chain_id: int) -> dict[str, Any]:
    """The genesis of an L2: the developer has ether, and every fork up to Canyon is there."""
    config: dict[str, Any] = {f"{fork}Block": 0 for fork in _FORKS_BY_BLOCK}
    times = {"regolithTime": 0, "shanghaiTime": 0, "canyonTime": 0}
    return {
        "config": {
            "chainId": chain_id,
            "terminalTotalDifficulty": 0,
            "optimism": _FEES,
            **config,
            **times,
        },
        "timestamp": hex(anchor.timestamp),
        "gasLimit": hex(GAS_LIMIT),
        "baseFeePerGas": hex(10**9),
        "difficulty": "0x0",
        "extraData": "0x",
        "alloc": {
            DEVELOPER.address: {"balance": hex(10**24)},
            # An output root proves this account's storage: it has to exist.
            _MESSAGE_PASSER: {"balance": "0x0", "nonce": "0x1"},
        },
    }


def rollup_of(
    anchor: Anchor, l2_hash: str, batcher_address: str, l2_chain_id: int
) -> dict[str, Any]:
    """What op-node derives the L2 by; the contracts that it names need not exist."""
    return {
        "genesis": {
            "l1": {"hash": anchor.hash, "number": anchor.number},
            "l2": {"hash": l2_hash, "number": 0},
            "l2_time": anchor.timestamp,
            "system_config": {
                "batcherAddr": batcher_address,
                "overhead": f"0x{0:064x}",
                "scalar": f"0x{1_000_000:064x}",
                "gasLimit": GAS_LIMIT,
            },
        },
        "block_time": BLOCK_TIME,
        "max_sequencer_drift": 600,
        "seq_window_size": 3600,
        "channel_timeout": 300,
        "l1_chain_id": L1_CHAIN_ID,
        "l2_chain_id": l2_chain_id,
        "regolith_time": 0,
        "canyon_time": 0,
        "batch_inbox_address": f"0xff{l2_chain_id:038d}",
        "deposit_contract_address": f"0x{0xDE:040x}",
        "l1_system_config_address": f"0x{0x5C:040x}",
        "protocol_versions_address": f"0x{0:040x}",
        "chain_op_config": _FEES,
    }
