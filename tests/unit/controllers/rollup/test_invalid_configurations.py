"""What a user reads of a chain that is configured wrongly: every sentence, from end to end."""

import zlib
from collections.abc import Mapping
from typing import Any

import pytest

import chains
from chains import (
    BATCHER,
    BATCHER_KEY,
    JWT,
    PROPOSER,
    STRANGER,
    STRANGER_KEY,
    Content,
    Document,
    changed,
    genesis,
    material,
    rollup,
    spec,
    with_forks,
    without,
)
from chains import DISPUTE_GAME_FACTORY as FACTORY
from chains import OPTIMISM_PORTAL as PORTAL
from pequod.api.rollup import OPChainSpec
from pequod.controllers.rollup import configuration as configurations
from pequod.controllers.rollup.configuration import (
    PACKED_GENESIS,
    InvalidConfigurationError,
    Material,
    configuration,
    packed,
)
from pequod.controllers.rollup.findings import File

GENESIS = "Secret chain-genesis, genesis.json"
PACKED = "Secret chain-genesis, genesis.json.gz"
ROLLUP = "Secret chain-rollup, rollup.json"
BATCHER_FILE = "Secret chain-batcher-key, key"
PROPOSER_FILE = "Secret chain-proposer-key, key"
JWT_FILE = "Secret chain-jwt, jwt"
L1_URL_FILE = "Secret chain-l1, url"
L1_CHAIN_FILE = "Secret chain-l1, chain.json"
ADDRESSES = "spec.l1.contractAddresses"

ABSENT = object()
ZERO_ADDRESS = f"0x{'0' * 40}"
ZERO_HASH = f"0x{'0' * 64}"
NO_ADDRESS = "must be an address: 0x and 40 hexadecimal digits"
NO_HASH = "must be 0x and 64 hexadecimal digits"
NO_KEY = "must be a private key: 64 hexadecimal digits, with or without 0x"
NO_JWT = "must be 32 bytes as 64 hexadecimal digits, with or without 0x"


def problems(spec: OPChainSpec, material: Material) -> list[str]:
    """Everything that is said of a configuration."""
    with pytest.raises(InvalidConfigurationError) as caught:
        configuration(spec, material)
    assert str(caught.value) == "; ".join(caught.value.problems)
    return caught.value.problems


def short(value: object) -> str:
    """What a case is called."""
    return "absent" if value is ABSENT else ascii(value)[:40]


def spoiled(document: Document, path: str, value: object) -> Document:
    return without(document, path) if value is ABSENT else changed(document, path, value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (".config.chainId", ABSENT, "is missing"),
        (".config.chainId", None, "is missing"),
        (".config.chainId", 778, "is 778, but spec.l2.chainId is 777"),
        (".config.chainId", 0, "must be between 1 and 2^63-1, not 0"),
        (".config.chainId", -777, "must be between 1 and 2^63-1, not -777"),
        (".config.chainId", 2**64, f"must be between 1 and 2^63-1, not {2**64}"),
        (".config.chainId", 777.5, "must be a whole number, not 777.5"),
        (".config.chainId", True, "must be a whole number, not true"),
        (".config.chainId", [777], "must be a whole number, not [777]"),
        (".config.bedrockBlock", ABSENT, "is missing"),
        (".config.optimism", ABSENT, "is missing"),
        (".config.optimism", [], "must be an object"),
        (".config.optimism.eip1559Elasticity", ABSENT, "is missing"),
        (".config.optimism.eip1559Denominator", ABSENT, "is missing"),
        (".config.optimism.eip1559DenominatorCanyon", ABSENT, "is missing"),
        (".alloc", ABSENT, "is missing"),
        (".alloc", [], "must be an object"),
        (".timestamp", ABSENT, "is missing"),
        (".timestamp", "0x", 'must be a whole number, not "0x"'),
        (".timestamp", "yesterday", 'must be a whole number, not "yesterday"'),
        (".timestamp", "٣", 'must be a whole number, not "٣"'),
        (".timestamp", {"now": 1}, 'must be a whole number, not {"now":1}'),
        (".gasLimit", ABSENT, "is missing"),
        (".gasLimit", "0x0", 'must be between 1 and 2^63-1, not "0x0"'),
        (".difficulty", "0x20000", "must be 0: a rollup is not mined"),
        (".config.shanghaiTime", ABSENT, "is not set, but canyonTime, which it comes with, is 0"),
        (".config.shanghaiTime", 9, "is 9, but canyonTime, which it comes with, is 0"),
        (".config.cancunTime", ABSENT, "is not set, but ecotoneTime, which it comes with, is 0"),
        (".config.cancunTime", 9, "is 9, but ecotoneTime, which it comes with, is 0"),
        (".config.pragueTime", ABSENT, "is not set, but isthmusTime, which it comes with, is 0"),
        (".config.pragueTime", 9, "is 9, but isthmusTime, which it comes with, is 0"),
    ],
    ids=short,
)
def test_what_is_wrong_in_a_genesis_is_said(path: str, value: object, said: str) -> None:
    found = problems(spec(), material(genesis=spoiled(genesis(), path, value)))
    assert found == [f"{GENESIS}, {path}: {said}"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (".l2_chain_id", ABSENT, "is missing"),
        (".l2_chain_id", 778, "is 778, but spec.l2.chainId is 777"),
        (".l1_chain_id", ABSENT, "is missing"),
        (".l1_chain_id", 1, "is 1, but spec.l1.chainId is 1337"),
        (".l1_chain_id", 1.5, "must be a whole number, not 1.5"),
        (".block_time", ABSENT, "is missing"),
        (".block_time", 0, "must be between 1 and 2^63-1, not 0"),
        (".block_time", -2, "must be between 1 and 2^63-1, not -2"),
        (".block_time", 0.25, "must be a whole number, not 0.25"),
        (".block_time", "2s", 'must be a whole number, not "2s"'),
        (".max_sequencer_drift", 0, "must be between 1 and 2^63-1, not 0"),
        (".seq_window_size", ABSENT, "is missing"),
        (".channel_timeout", 0, "must be between 1 and 2^63-1, not 0"),
        (".genesis", ABSENT, "is missing"),
        (".genesis", "genesis.json", "must be an object"),
        (".genesis.l1.hash", ABSENT, "is missing"),
        (".genesis.l1.hash", 12, f"{NO_HASH}, not 12"),
        (".genesis.l1.hash", "0x12", f'{NO_HASH}, not "0x12"'),
        (".genesis.l1.hash", "1" * 64, f'{NO_HASH}, not "{"1" * 64}"'),
        (".genesis.l1.hash", f"0x{'g' * 64}", f'{NO_HASH}, not "0x{"g" * 64}"'),
        (".genesis.l1.hash", f"0x{'1' * 65}", f'{NO_HASH}, not "0x{"1" * 65}"'),
        (".genesis.l1.hash", f"0x{'1' * 999}", f'{NO_HASH}, not "0x{"1" * 37}…'),
        (".genesis.l1.hash", ZERO_HASH, "must not be all zeros"),
        (".genesis.l1.number", ABSENT, "is missing"),
        (".genesis.l1.number", -1, "must be between 0 and 2^63-1, not -1"),
        (".genesis.l1.number", "latest", 'must be a whole number, not "latest"'),
        (".genesis.l2.hash", ABSENT, "is missing"),
        (".genesis.l2.hash", ZERO_HASH, "must not be all zeros"),
        (".genesis.l2.number", ABSENT, "is missing"),
        (".genesis.l2.number", 5, f"is 5, but .number of {GENESIS} is 0"),
        (".genesis.l2_time", ABSENT, "is missing"),
        (".genesis.l2_time", 5, f"is 5, but .timestamp of {GENESIS} is 1760000000"),
        (".genesis.system_config", ABSENT, "is missing"),
        (".genesis.system_config", None, "is missing"),
        (".genesis.system_config.batcherAddr", ABSENT, "is missing"),
        (".genesis.system_config.batcherAddr", "0x12", NO_ADDRESS),
        (".genesis.system_config.batcherAddr", 12, NO_ADDRESS),
        (
            ".genesis.system_config.batcherAddr",
            BATCHER.replace("d", "D"),
            f"has a wrong checksum: {BATCHER} would be right",
        ),
        (".genesis.system_config.gasLimit", 0, "must be between 1 and 2^63-1, not 0"),
        (".batch_inbox_address", ABSENT, "is missing"),
        (".batch_inbox_address", ZERO_ADDRESS, "must not be the zero address"),
        (".deposit_contract_address", ABSENT, "is missing"),
        (".deposit_contract_address", ZERO_ADDRESS, "must not be the zero address"),
        (
            ".deposit_contract_address",
            STRANGER.lower(),
            f"is {STRANGER}, but {ADDRESSES}.optimismPortal is {PORTAL}",
        ),
        (".l1_system_config_address", ABSENT, "is missing"),
        (".l1_system_config_address", ZERO_ADDRESS, "must not be the zero address"),
        (
            ".l1_system_config_address",
            STRANGER,
            f"is {STRANGER}, but {ADDRESSES}.systemConfig is {chains.SYSTEM_CONFIG}",
        ),
        (".chain_op_config", ABSENT, "is missing"),
        (".chain_op_config", [], "must be an object"),
        (".chain_op_config.eip1559DenominatorCanyon", ABSENT, "is missing"),
        (
            ".chain_op_config.eip1559Denominator",
            8,
            f"is 8, but .config.optimism.eip1559Denominator of {GENESIS} is 50",
        ),
        (".isthmus_time", ABSENT, f"is not set, but .config.isthmusTime of {GENESIS} is 0"),
        (".isthmus_time", 9, f"is 9, but .config.isthmusTime of {GENESIS} is 0"),
        (".jovian_time", 9, f"is 9, but .config.jovianTime of {GENESIS} is not set"),
    ],
    ids=short,
)
def test_what_is_wrong_in_a_rollup_is_said(path: str, value: object, said: str) -> None:
    found = problems(spec(), material(rollup=spoiled(rollup(), path, value)))
    assert found == [f"{ROLLUP}, {path}: {said}"]


@pytest.mark.parametrize(
    "digits",
    [
        "٣" * 64,
        "３" * 64,
        f"0x{'1' * 62}",
        f" {'1' * 63}",
        f"{'1' * 63}\n",
        f"-{'1' * 63}",
        f"1_{'1' * 62}",
    ],
    ids=short,
)
def test_a_hash_has_no_digits_but_hexadecimal_ones(digits: str) -> None:
    found = problems(spec(), material(rollup=changed(rollup(), ".genesis.l2.hash", f"0x{digits}")))
    assert [text.partition(", not ")[0] for text in found] == [
        f"{ROLLUP}, .genesis.l2.hash: {NO_HASH}"
    ]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            {"fjord": 5, "granite": 3, "holocene": 9, "isthmus": 9},
            [".granite_time: is 3, before fjord_time, which is 5"],
        ),
        (
            {"delta": 9, "ecotone": 8, "fjord": 9, "granite": 8, "holocene": 9, "isthmus": 9},
            [
                ".ecotone_time: is 8, before delta_time, which is 9",
                ".granite_time: is 8, before fjord_time, which is 9",
            ],
        ),
        ({"delta": None}, [".ecotone_time: is set, but delta_time, which comes before, is not"]),
        (
            {"regolith": None},
            [".canyon_time: is set, but regolith_time, which comes before, is not"],
        ),
        (
            {"fjord": None, "granite": None},
            [".holocene_time: is set, but fjord_time, which comes before, is not"],
        ),
        (
            {"canyon": None, "holocene": None},
            [
                ".delta_time: is set, but canyon_time, which comes before, is not",
                ".isthmus_time: is set, but holocene_time, which comes before, is not",
            ],
        ),
        (
            {"isthmus": None, "jovian": 9},
            [".jovian_time: is set, but isthmus_time, which comes before, is not"],
        ),
    ],
    ids=short,
)
def test_forks_that_are_out_of_order_are_said(
    times: Mapping[str, int | None], said: list[str]
) -> None:
    first, second = with_forks(**times)
    found = problems(spec(), material(genesis=first, rollup=second))
    assert found == [f"{ROLLUP}, {text}" for text in said]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON: Input data was truncated"),
        (b'{"config":', "is not JSON: Input data was truncated"),
        (b"config: {}", "is not JSON: JSON is malformed: invalid character (byte 0)"),
        (b"{} {}", "is not JSON: JSON is malformed: trailing characters (byte 4)"),
        (b"\xef\xbb\xbf{}", "is not JSON: JSON is malformed: invalid character (byte 0)"),
        (packed(b"{}"), "is not JSON: JSON is malformed: invalid character (byte 0)"),
        (
            b"[" * 10_000,
            "is not JSON: maximum recursion depth exceeded while deserializing an object",
        ),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (f'"{BATCHER_KEY}"'.encode(), "must be a JSON object"),
    ],
    ids=short,
)
def test_what_is_no_json_object_is_said_of_every_file(content: bytes, said: str) -> None:
    found = problems(spec(), material(genesis=content, rollup=content, l1_chain=content))
    assert found == [f"{file}: {said}" for file in (GENESIS, ROLLUP, L1_CHAIN_FILE)]


@pytest.mark.parametrize("content", [b'{"a":"\xff"}', b'{"\xff":1}', b'{"a":"\xed\xa0\x80"}'])
def test_text_that_is_not_unicode_is_no_json(content: bytes) -> None:
    found = problems(spec(), material(genesis=content, rollup=content))
    assert [text.rpartition("is not JSON: ")[0] for text in found] == [
        f"{GENESIS}: ",
        f"{ROLLUP}: ",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is incomplete"),
        (b"{}", "cannot be unpacked: it must be made by gzip"),
        (zlib.compress(b"{}"), "cannot be unpacked: it must be made by gzip"),
        (packed(b"{}")[:-9], "is incomplete"),
        (packed(b"{}")[:-4], "is incomplete"),
        (packed(b"[]"), "must be a JSON object"),
        (packed(b"{"), "is not JSON: Input data was truncated"),
        (packed(b" " * 1001), "is more than 32 MiB when unpacked"),
    ],
    ids=short,
)
def test_what_is_wrong_with_a_packed_genesis_is_said(
    monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.setattr(configurations, "LARGEST_GENESIS", 1000)
    found = problems(spec(), material(genesis=File("chain-genesis", PACKED_GENESIS, content)))
    assert found == [f"{PACKED}: {said}"]


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"jwt": b""}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": JWT[:-1].encode()}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": f"{JWT}00".encode()}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": f"{JWT[:-1]}g".encode()}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": f"{JWT[:32]}\n{JWT[32:]}".encode()}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": bytes.fromhex(JWT)}, f"{JWT_FILE}: {NO_JWT}"),
        ({"jwt": ("٣" * 64).encode()}, f"{JWT_FILE}: {NO_JWT}"),
        ({"batcher_key": b""}, f"{BATCHER_FILE}: {NO_KEY}"),
        ({"batcher_key": BATCHER_KEY[1:].encode()}, f"{BATCHER_FILE}: {NO_KEY}"),
        ({"batcher_key": bytes.fromhex(BATCHER_KEY)}, f"{BATCHER_FILE}: {NO_KEY}"),
        (
            {"batcher_key": b"0" * 64},
            f"{BATCHER_FILE}: is not a private key of secp256k1: it is zero or too large",
        ),
        (
            {"batcher_key": STRANGER_KEY.encode()},
            f"{BATCHER_FILE}: is the key of {STRANGER}, but {ROLLUP}, "
            f".genesis.system_config.batcherAddr is {BATCHER}; "
            "set spec.l1.contractAddresses.batcher if SystemConfig names another by now",
        ),
        ({"proposer_key": b"0x"}, f"{PROPOSER_FILE}: {NO_KEY}"),
        (
            {"proposer_key": b"f" * 64},
            f"{PROPOSER_FILE}: is not a private key of secp256k1: it is zero or too large",
        ),
        (
            {"proposer_key": BATCHER_KEY.encode()},
            f"{PROPOSER_FILE}: is the batcher's key as well ({BATCHER}): two programs that send "
            "from one account get into each other's way; give the proposer an account of its own",
        ),
        ({"l1_url": b""}, f"{L1_URL_FILE}: must be an http or https URL"),
        ({"l1_url": b"l1.example:8545"}, f"{L1_URL_FILE}: must be an http or https URL"),
        ({"l1_url": b"ws://l1.example"}, f"{L1_URL_FILE}: must be an http or https URL"),
        ({"l1_url": b"https://?key=1"}, f"{L1_URL_FILE}: must be an http or https URL"),
        ({"l1_url": b"https://a b"}, f"{L1_URL_FILE}: must be an http or https URL"),
        (
            {"l1_chain": without(chains.l1_chain(), ".chainId")},
            f"{L1_CHAIN_FILE}, .chainId: is missing",
        ),
        (
            {"l1_chain": changed(chains.l1_chain(), ".chainId", 1)},
            f"{L1_CHAIN_FILE}, .chainId: is 1, but spec.l1.chainId is 1337",
        ),
    ],
    ids=short,
)
def test_what_is_wrong_in_another_secret_is_said(replaced: dict[str, Content], said: str) -> None:
    assert problems(spec(), material(**replaced)) == [said]


@pytest.mark.parametrize(
    ("address", "value", "said"),
    [
        ("optimismPortal", PORTAL.lower(), f"has no checksum: write {PORTAL}"),
        (
            "systemConfig",
            f"0x{chains.SYSTEM_CONFIG[2:].upper()}",
            f"has no checksum: write {chains.SYSTEM_CONFIG}",
        ),
        (
            "disputeGameFactory",
            FACTORY.replace("A", "a"),
            f"has a wrong checksum: {FACTORY} would be right",
        ),
        ("l2OutputOracle", ZERO_ADDRESS, "must not be the zero address"),
        ("l1StandardBridge", ZERO_ADDRESS, "must not be the zero address"),
        ("l1CrossDomainMessenger", STRANGER.lower(), f"has no checksum: write {STRANGER}"),
        ("addressManager", ZERO_ADDRESS, "must not be the zero address"),
        ("batcher", BATCHER.lower(), f"has no checksum: write {BATCHER}"),
        ("proposer", PROPOSER.lower(), f"has no checksum: write {PROPOSER}"),
    ],
)
def test_what_is_wrong_with_an_address_of_the_spec_is_said(
    address: str, value: str, said: str
) -> None:
    found = problems(spec(l1={"contractAddresses": {address: value}}), material())
    assert found == [f"{ADDRESSES}.{address}: {said}"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"l2": {"chainId": 778}},
            [
                f"{GENESIS}, .config.chainId: is 777, but spec.l2.chainId is 778",
                f"{ROLLUP}, .l2_chain_id: is 777, but spec.l2.chainId is 778",
            ],
        ),
        (
            {"l1": {"chainId": 1}},
            [
                f"{ROLLUP}, .l1_chain_id: is 1337, but spec.l1.chainId is 1",
                f"{L1_CHAIN_FILE}, .chainId: is 1337, but spec.l1.chainId is 1",
            ],
        ),
        (
            {"l1": {"contractAddresses": {"batcher": STRANGER}}},
            [f"{BATCHER_FILE}: is the key of {BATCHER}, but {ADDRESSES}.batcher is {STRANGER}"],
        ),
        (
            {"l1": {"contractAddresses": {"proposer": STRANGER}}},
            [f"{PROPOSER_FILE}: is the key of {PROPOSER}, but {ADDRESSES}.proposer is {STRANGER}"],
        ),
    ],
    ids=short,
)
def test_a_spec_that_the_secrets_do_not_fit_is_said(
    changes: dict[str, Any], said: list[str]
) -> None:
    assert problems(spec(**changes), material()) == said


def test_everything_that_is_wrong_is_said_at_once_and_once() -> None:
    first = changed(changed(genesis(), ".config.chainId", 1), ".alloc", None)
    second = changed(without(rollup(), ".block_time"), ".genesis.l1.hash", "0x12")
    asked = spec(l1={"contractAddresses": {"l1StandardBridge": ZERO_ADDRESS}})
    held = material(
        genesis=first, rollup=second, jwt=b"secret", l1_url=b"l1", l1_chain=b"", batcher_key=b"key"
    )
    assert problems(asked, held) == [
        f"{ADDRESSES}.l1StandardBridge: must not be the zero address",
        f"{GENESIS}, .config.chainId: is 1, but spec.l2.chainId is 777",
        f"{GENESIS}, .alloc: is missing",
        f"{ROLLUP}, .block_time: is missing",
        f'{ROLLUP}, .genesis.l1.hash: {NO_HASH}, not "0x12"',
        f"{L1_CHAIN_FILE}: is not JSON: Input data was truncated",
        f"{JWT_FILE}: {NO_JWT}",
        f"{L1_URL_FILE}: must be an http or https URL",
        f"{BATCHER_FILE}: {NO_KEY}",
    ]


def test_a_file_that_cannot_be_read_hides_nothing_of_the_other() -> None:
    found = problems(spec(), material(genesis=b"", rollup=without(rollup(), ".genesis.l1")))
    assert found == [
        f"{GENESIS}: is not JSON: Input data was truncated",
        f"{ROLLUP}, .genesis.l1.hash: is missing",
        f"{ROLLUP}, .genesis.l1.number: is missing",
    ]


def test_the_names_of_the_secrets_are_those_of_the_user() -> None:
    renamed = File("l2-genesis", "genesis.json", b"")
    held = material(genesis=renamed, jwt=File("engine-2024", "jwt", b""))
    assert problems(spec(), held) == [
        "Secret l2-genesis, genesis.json: is not JSON: Input data was truncated",
        f"Secret engine-2024, jwt: {NO_JWT}",
    ]


def test_what_is_valid_keeps_its_secrets_as_well() -> None:
    url = b"https://l1.example/v2/0123456789abcdef"
    text = repr(configuration(spec(), material(l1_url=url)))
    for hidden in (BATCHER_KEY, chains.PROPOSER_KEY, JWT, "0123456789abcdef"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("component", "argument", "said"),
    [
        ("batcher", "--private-key=0xabc", "--private-key is not allowed: everybody could read it"),
        ("proposer", "-mnemonic", "--mnemonic is not allowed: everybody could read it there"),
        ("node", "--network=op-sepolia", "--network is not allowed: the chain is that of genesis"),
        ("geth", "--datadir=/tmp/x", "--datadir is not allowed: the data belongs on the volume"),
    ],
)
def test_an_argument_that_would_undo_what_is_checked_is_refused(
    component: str, argument: str, said: str
) -> None:
    asked = chains.spec(components={component: {"extraArgs": ["--verbosity=3", argument]}})
    (found,) = problems(asked, chains.material())
    assert found.startswith(f"spec.components.{component}.extraArgs: {said}")
    assert "0xabc" not in found
