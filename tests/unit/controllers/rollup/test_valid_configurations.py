"""Chains as the world has them: each must pass, and be understood the same way."""

import gzip
import json

import pytest

import chains
from chains import (
    BATCHER,
    BATCHER_KEY,
    GENESIS_TIME,
    JWT,
    PROPOSER,
    PROPOSER_KEY,
    STRANGER,
    STRANGER_KEY,
    Document,
    changed,
    genesis,
    material,
    rollup,
    spec,
    with_forks,
    without,
)
from pequod.controllers.rollup.configuration import PACKED_GENESIS, configuration, packed
from pequod.controllers.rollup.findings import File

AFTER_CANYON = dict.fromkeys(chains.FORKS[2:])
GENESIS_HASH = rollup()["genesis"]["l2"]["hash"]
ZERO_ADDRESS = f"0x{'0' * 40}"


def packed_file(content: bytes) -> File:
    return File("chain-genesis", PACKED_GENESIS, content)


def test_a_chain_of_op_deployer_is_understood() -> None:
    found = configuration(spec(), material())
    assert found.genesis == chains.encoded(genesis())
    assert found.rollup == chains.encoded(rollup())
    assert found.l1_chain == chains.encoded(chains.l1_chain())
    assert found.jwt == JWT
    assert found.l1_url == chains.L1_URL
    assert found.batcher is not None
    assert (found.batcher.address, found.batcher.key) == (BATCHER, BATCHER_KEY)
    assert found.proposer is not None
    assert (found.proposer.address, found.proposer.key) == (PROPOSER, PROPOSER_KEY)
    assert found.block_time == 2
    assert found.genesis_hash == GENESIS_HASH


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".timestamp", GENESIS_TIME),
        (".timestamp", str(GENESIS_TIME)),
        (".timestamp", f"0X{GENESIS_TIME:X}"),
        (".gasLimit", 60_000_000),
        (".gasLimit", "60000000"),
        (".difficulty", 0),
        (".difficulty", "0"),
        (".number", 0),
        (".number", None),
        (".slotNumber", None),
        (".config.daoForkBlock", None),
        (".config.jovianTime", None),
        (".config.terminalTotalDifficultyPassed", True),
        (".config.depositContractAddress", ZERO_ADDRESS),
        (".extraData", "0x"),
        (".extraData", "0x424544524f434b"),
        (".alloc", {}),
    ],
)
def test_a_genesis_that_geth_reads_is_valid(path: str, value: object) -> None:
    configuration(spec(), material(genesis=changed(genesis(), path, value)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".genesis.system_config.batcherAddr", BATCHER),
        (".genesis.system_config.batcherAddr", f"0x{BATCHER[2:].upper()}"),
        (".deposit_contract_address", chains.OPTIMISM_PORTAL),
        (".l1_system_config_address", chains.SYSTEM_CONFIG),
        (".genesis.l1.number", 0),
        (".jovian_time", None),
        (".protocol_versions_address", ZERO_ADDRESS),
        (".pectra_blob_schedule_time", 1_742_486_400),
        (".interop_time", None),
        (".alt_da", None),
        (
            ".alt_da",
            {
                "da_challenge_contract_address": ZERO_ADDRESS,
                "da_commitment_type": "GenericCommitment",
                "da_challenge_window": 1,
                "da_resolve_window": 1,
            },
        ),
        (".da_challenge_window", 0),
        (".use_plasma", False),
        (".superchain", "sepolia"),
        (".cel2_time", 0),
        (".genesis.system_config.overhead", f"0x{188:064x}"),
        (".genesis.system_config.scalar", f"0x{684_000:064x}"),
        (".genesis.system_config.eip1559Params", "0x000000fa00000006"),
    ],
)
def test_a_rollup_that_op_node_reads_is_valid(path: str, value: object) -> None:
    configuration(spec(), material(rollup=changed(rollup(), path, value)))


@pytest.mark.parametrize("name", ["eip1559Params", "operatorFeeParams", "minBaseFee"])
def test_a_system_config_from_before_a_fork_lacks_its_fields(name: str) -> None:
    path = f".genesis.system_config.{name}"
    configuration(spec(), material(rollup=without(rollup(), path)))


def test_a_chain_may_have_no_fork_after_canyon() -> None:
    first, second = with_forks(**AFTER_CANYON)
    configuration(spec(), material(genesis=first, rollup=second))
    for name in AFTER_CANYON:
        second = without(second, f".{name}_time")
    configuration(spec(), material(genesis=first, rollup=second))


def test_a_chain_before_canyon_has_no_fees_of_canyon() -> None:
    first, second = with_forks(**dict.fromkeys(chains.FORKS[1:]))
    first = without(first, ".config.optimism.eip1559DenominatorCanyon")
    second = without(second, ".chain_op_config.eip1559DenominatorCanyon")
    configuration(spec(), material(genesis=first, rollup=second))


def test_forks_may_come_later_and_together() -> None:
    soon = GENESIS_TIME + 3600
    first, second = with_forks(granite=soon, holocene=soon, isthmus=soon + 7200, jovian=2**40)
    configuration(spec(), material(genesis=first, rollup=second))


def test_a_chain_that_was_migrated_begins_at_a_later_block() -> None:
    first = changed(changed(genesis(), ".number", "0x645c277"), ".config.bedrockBlock", 105_235_063)
    second = changed(rollup(), ".genesis.l2.number", 105_235_063)
    configuration(spec(), material(genesis=first, rollup=second))


@pytest.mark.parametrize(
    "content",
    [
        chains.encoded(genesis()),
        json.dumps(genesis(), indent=4).encode(),
        b"\n\t " + chains.encoded(genesis()) + b"\r\n",
    ],
)
@pytest.mark.parametrize("level", [0, 1, 9])
def test_a_genesis_may_be_packed(content: bytes, level: int) -> None:
    held = material(genesis=packed_file(gzip.compress(content, compresslevel=level)))
    assert configuration(spec(), held).genesis == content


def test_a_genesis_is_always_packed_to_the_same_bytes() -> None:
    content = chains.encoded(genesis())
    assert packed(content) == packed(content)
    assert configuration(spec(), material(genesis=packed_file(packed(content)))).genesis == content


@pytest.mark.parametrize(
    "text", [JWT, f"0x{JWT}", JWT.upper(), f"0x{JWT.upper()}", f"{JWT}\n", f" 0x{JWT}\r\n"]
)
def test_a_jwt_may_be_written_in_many_ways(text: str) -> None:
    assert configuration(spec(), material(jwt=text.encode())).jwt == JWT


@pytest.mark.parametrize("text", [f"0x{BATCHER_KEY}", BATCHER_KEY.upper(), f"{BATCHER_KEY}\n"])
def test_a_key_may_be_written_in_many_ways(text: str) -> None:
    found = configuration(spec(), material(batcher_key=text.encode())).batcher
    assert found is not None
    assert (found.address, found.key) == (BATCHER, BATCHER_KEY)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "https://user:password@l1.example:8545",
        "https://l1.example/v2/key?network=mainnet",
        "http://[::1]:8545/",
    ],
)
def test_the_url_of_l1_may_be_hidden(url: str) -> None:
    asked = spec(l1={"rpcUrl": None, "rpcUrlSecretRef": {"name": "chain-l1", "key": "url"}})
    assert configuration(asked, material(l1_url=f"{url}\n".encode())).l1_url == url


def test_another_batcher_than_at_genesis_is_valid_when_the_spec_names_it() -> None:
    asked = spec(l1={"contractAddresses": {"batcher": STRANGER}})
    found = configuration(asked, material(batcher_key=STRANGER_KEY.encode()))
    assert found.batcher is not None
    assert found.batcher.address == STRANGER


def test_a_chain_may_have_no_batcher_and_no_proposer() -> None:
    asked = spec(
        l1={"contractAddresses": {"disputeGameFactory": None}},
        components={"batcher": {"enabled": False}, "proposer": {"enabled": False}},
    )
    found = configuration(asked, material(batcher_key=None, proposer_key=None))
    assert (found.batcher, found.proposer) == (None, None)


def test_an_l1_that_op_node_knows_needs_no_configuration() -> None:
    asked = spec(l1={"chainId": 11_155_111, "chainConfigSecret": None})
    held = material(rollup=changed(rollup(), ".l1_chain_id", 11_155_111), l1_chain=None)
    assert configuration(asked, held).l1_chain is None


def test_a_spec_need_not_name_any_contract() -> None:
    configuration(spec(l1={"contractAddresses": None}), material())


def identity(first: Document, second: Document) -> str:
    """Where a chain begins, by its files."""
    return configuration(spec(), material(genesis=first, rollup=second)).identity


def test_a_chain_stays_the_same_when_its_files_are_written_anew() -> None:
    held = material(
        genesis=packed_file(packed(json.dumps(genesis(), indent=2, sort_keys=True).encode())),
        rollup=json.dumps(rollup(), indent=2, sort_keys=True).encode(),
    )
    assert configuration(spec(), held).identity == identity(genesis(), rollup())


def test_a_chain_stays_the_same_when_forks_are_added() -> None:
    before = identity(*with_forks(holocene=None, isthmus=None))
    assert identity(*with_forks(holocene=None, isthmus=None)) == before
    assert identity(*with_forks(holocene=GENESIS_TIME + 60, isthmus=GENESIS_TIME + 60)) == before
    assert identity(*with_forks(holocene=GENESIS_TIME + 60, isthmus=None)) == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".alloc", {}),
        (f".alloc.{BATCHER[2:].lower()}.balance", "0x1"),
        (f".alloc.{BATCHER[2:].lower()}.storage", {f"0x{0:064x}": f"0x{1:064x}"}),
        (".extraData", "0x"),
        (".gasLimit", "0x1c9c380"),
        (".baseFeePerGas", "0x1"),
        (".coinbase", ZERO_ADDRESS),
    ],
)
def test_another_first_block_is_another_chain(path: str, value: object) -> None:
    assert identity(changed(genesis(), path, value), rollup()) != identity(genesis(), rollup())


@pytest.mark.parametrize("path", [".genesis.l1.hash", ".genesis.l2.hash"])
def test_another_origin_is_another_chain(path: str) -> None:
    moved = changed(rollup(), path, f"0x{'12' * 32}")
    assert identity(genesis(), moved) != identity(genesis(), rollup())


def test_another_time_or_place_of_the_origin_is_another_chain() -> None:
    later = changed(genesis(), ".timestamp", hex(GENESIS_TIME + 2))
    shifted = changed(rollup(), ".genesis.l2_time", GENESIS_TIME + 2)
    moved = changed(rollup(), ".genesis.l1.number", 13)
    known = {identity(genesis(), rollup()), identity(later, shifted), identity(genesis(), moved)}
    assert len(known) == 3


def test_another_chain_id_is_another_chain() -> None:
    first = changed(genesis(), ".config.chainId", 778)
    second = changed(rollup(), ".l2_chain_id", 778)
    found = configuration(spec(l2={"chainId": 778}), material(genesis=first, rollup=second))
    assert found.identity != identity(genesis(), rollup())
