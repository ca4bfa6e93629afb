"""A valid chain, as op-deployer and a geth in developer mode would give it, and ways to spoil it.

Chain 777 on L1 chain 1337, with every fork up to Isthmus from the start. The hash of its first
block is the one that op-geth makes of this genesis.
"""

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from pequod.api.rollup import API_VERSION, OPChainSpec
from pequod.controllers.rollup.configuration import Material
from pequod.controllers.rollup.findings import File

Document = dict[str, Any]
Content = Mapping[str, Any] | bytes | File | None

L1_CHAIN_ID = 1337
L2_CHAIN_ID = 777
GENESIS_TIME = 1_760_000_000

BATCHER_KEY = "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"
"""Of the developer account of geth, which has all the ether of an L1 in developer mode."""
BATCHER = "0x71562b71999873DB5b286dF957af199Ec94617F7"
PROPOSER_KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
"""Of the second account of anvil."""
PROPOSER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
STRANGER_KEY = "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"
"""Of the third account of anvil, which is nobody here."""
STRANGER = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
JWT = "688f5d737bad920bdfb2fc2f488d6b6209eebda1dae949a8de91398d932c517a"

OPTIMISM_PORTAL = "0xbEb5Fc579115071764c7423A4f12eDde41f106Ed"
SYSTEM_CONFIG = "0x229047fed2591dbec1eF1118d64F7aF3dB9EB290"
DISPUTE_GAME_FACTORY = "0xe5965Ab5962eDc7477C8520243A95517CD252fA9"
L1_URL = "http://l1.example:8545"

ETHEREUM_BLOCKS = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg"),
    *("istanbul", "muirGlacier", "berlin", "london", "arrowGlacier", "grayGlacier"),
    "mergeNetsplit",
)
FORKS = ("regolith", "canyon", "delta", "ecotone", "fjord", "granite", "holocene", "isthmus")
ETHEREUM_FORKS = {"canyon": "shanghai", "ecotone": "cancun", "isthmus": "prague"}
"""The fork of Ethereum that comes with one of the rollup."""
_FEES = {"eip1559Elasticity": 6, "eip1559Denominator": 50, "eip1559DenominatorCanyon": 250}
_MESSAGE_PASSER = "4200000000000000000000000000000000000016"
"""L2ToL1MessagePasser: from Isthmus on, the root of its storage is part of each block."""
_ZERO_HASH = f"0x{'0' * 64}"


def genesis() -> Document:
    """The genesis of L2, with the fewest accounts that a chain with Isthmus can begin with."""
    return {
        "config": {
            "chainId": L2_CHAIN_ID,
            **{f"{name}Block": 0 for name in ETHEREUM_BLOCKS},
            **{f"{name}Time": 0 for name in ETHEREUM_FORKS.values()},
            "bedrockBlock": 0,
            **{f"{name}Time": 0 for name in FORKS if name != "delta"},
            "terminalTotalDifficulty": 0,
            "optimism": dict(_FEES),
        },
        "nonce": "0x0",
        "timestamp": hex(GENESIS_TIME),
        "extraData": "0x00000000fa00000006",
        "gasLimit": hex(60_000_000),
        "difficulty": "0x0",
        "mixHash": _ZERO_HASH,
        "coinbase": "0x4200000000000000000000000000000000000011",
        "alloc": {
            _MESSAGE_PASSER: {"balance": "0x0", "nonce": "0x1", "code": "0x00"},
            BATCHER.lower().removeprefix("0x"): {"balance": "0xd3c21bcecceda1000000"},
        },
        "number": "0x0",
        "gasUsed": "0x0",
        "parentHash": _ZERO_HASH,
        "baseFeePerGas": "0x3b9aca00",
        "excessBlobGas": "0x0",
        "blobGasUsed": "0x0",
    }


def rollup() -> Document:
    """The rollup configuration that belongs to the genesis."""
    return {
        "genesis": {
            "l1": {
                "hash": "0x0d4ba3e4d5cb5aa3ccaf0dd3a29ee1a6c8e2a5c3e6f8a3cb6d2a1b0c9d8e7f60",
                "number": 12,
            },
            "l2": {
                "hash": "0xb0566a1c43d44b8b6e733dee8f98efcb7c5c48a36d47ba0c4719a36db9478024",
                "number": 0,
            },
            "l2_time": GENESIS_TIME,
            "system_config": {
                "batcherAddr": BATCHER.lower(),
                "overhead": _ZERO_HASH,
                "scalar": "0x010000000000000000000000000000000000000000000000000c5fc500000558",
                "gasLimit": 60_000_000,
                "eip1559Params": "0x0000000000000000",
                "operatorFeeParams": _ZERO_HASH,
                "minBaseFee": 0,
                "daFootprintGasScalar": 0,
            },
        },
        "block_time": 2,
        "max_sequencer_drift": 600,
        "seq_window_size": 3600,
        "channel_timeout": 300,
        "l1_chain_id": L1_CHAIN_ID,
        "l2_chain_id": L2_CHAIN_ID,
        **{f"{name}_time": 0 for name in FORKS},
        "batch_inbox_address": "0x009c8f5614bb174c2ae47564e24b9d7eabd43fca",
        "deposit_contract_address": OPTIMISM_PORTAL.lower(),
        "l1_system_config_address": SYSTEM_CONFIG.lower(),
        "chain_op_config": dict(_FEES),
    }


def l1_chain() -> Document:
    """What `debug_chainConfig` answers on an L1 in developer mode."""
    blobs = {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477}
    return {
        "chainId": L1_CHAIN_ID,
        **{f"{name}Block": 0 for name in ETHEREUM_BLOCKS},
        **{f"{name}Time": 0 for name in ETHEREUM_FORKS.values()},
        "terminalTotalDifficulty": 0,
        "depositContractAddress": f"0x{'0' * 40}",
        "blobSchedule": {"cancun": blobs, "prague": blobs},
    }


def with_forks(**times: int | None) -> tuple[Document, Document]:
    """Genesis and rollup in which forks come at other times, or not at all."""
    first, second = genesis(), rollup()
    for name, time in times.items():
        second[f"{name}_time"] = time
        if name == "delta":
            continue
        first["config"][f"{name}Time"] = time
        if name in ETHEREUM_FORKS:
            first["config"][f"{ETHEREUM_FORKS[name]}Time"] = time
    return first, second


def changed(document: Document, path: str, value: object) -> Document:
    """A document with something else at a path, for example `.config.chainId`."""
    copied = copy.deepcopy(document)
    holder, name = _place(copied, path)
    holder[name] = value
    return copied


def without(document: Document, path: str) -> Document:
    """A document with nothing at a path."""
    copied = copy.deepcopy(document)
    holder, name = _place(copied, path)
    del holder[name]
    return copied


def _place(document: Document, path: str) -> tuple[Document, str]:
    *above, name = path.removeprefix(".").split(".")
    for step in above:
        document = document[step]
    return document, name


_PLACES = {
    "genesis": ("genesis", "genesis.json"),
    "rollup": ("rollup", "rollup.json"),
    "jwt": ("jwt", "jwt"),
    "l1_chain": ("l1", "chain.json"),
    "l1_url": ("l1", "url"),
    "batcher_key": ("batcher-key", "key"),
    "proposer_key": ("proposer-key", "key"),
}
"""Which Secret of a chain holds what, and under which key."""


def material(**replacements: Content) -> Material:
    """What the Secrets of a valid chain hold, or something else instead: JSON, bytes, nothing."""
    files: dict[str, Any] = {name: _file(name, text.encode()) for name, text in _texts().items()}
    for name, content in replacements.items():
        files[name] = _file(name, content)
    return Material(**files)


def _texts() -> dict[str, str]:
    return {
        "genesis": encoded(genesis()).decode(),
        "rollup": encoded(rollup()).decode(),
        "jwt": JWT,
        "l1_chain": encoded(l1_chain()).decode(),
        "batcher_key": BATCHER_KEY,
        "proposer_key": PROPOSER_KEY,
    }


def encoded(document: object) -> bytes:
    """A document as JSON."""
    return msgspec.json.encode(document)


def _file(name: str, content: Content) -> File | None:
    if content is None or isinstance(content, File):
        return content
    secret, key = _PLACES[name]
    return File(f"chain-{secret}", key, content if isinstance(content, bytes) else encoded(content))


def secrets(chain: str = "chain") -> list[Document]:
    """The Secrets of a valid chain, as somebody would create them."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{chain}-{_PLACES[name][0]}"},
            "type": "Opaque",
            "stringData": {_PLACES[name][1]: text},
        }
        for name, text in _texts().items()
    ]


def opchain(name: str = "chain", **changes: object) -> Document:
    """An OPChain of which everything is enabled; a change is a merge patch of its spec."""
    return {
        "apiVersion": API_VERSION,
        "kind": "OPChain",
        "metadata": {"name": name},
        "spec": merged(_complete(name), changes),
    }


def spec(**changes: object) -> OPChainSpec:
    """The spec of that OPChain."""
    return msgspec.convert(merged(_complete("chain"), changes), OPChainSpec)


def _complete(name: str) -> Document:
    return {
        "l1": {
            "chainId": L1_CHAIN_ID,
            "rpcUrl": L1_URL,
            "chainConfigSecret": f"{name}-l1",
            "contractAddresses": {
                "optimismPortal": OPTIMISM_PORTAL,
                "systemConfig": SYSTEM_CONFIG,
                "disputeGameFactory": DISPUTE_GAME_FACTORY,
            },
        },
        "l2": {
            "chainId": L2_CHAIN_ID,
            "genesisConfigSecret": f"{name}-genesis",
            "rollupConfigSecret": f"{name}-rollup",
            "jwtSecret": f"{name}-jwt",
        },
        "components": {
            "batcher": {"signerPrivateKeySecret": f"{name}-batcher-key"},
            "proposer": {"signerPrivateKeySecret": f"{name}-proposer-key"},
        },
    }


def merged(before: Document, changes: Mapping[str, Any]) -> Document:
    """A document after a merge patch."""
    made = dict(before)
    for name, value in changes.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, Mapping):
            made[name] = merged(made.get(name) or {}, value)
        else:
            made[name] = value
    return made
