"""`pequod opchain secrets`, as it is typed: what is made of files, and what is wrong with them."""

import gzip
import json
import random
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import chains
from commandline import Pequod

URL = "https://l1.example/v3/0123456789abcdef"
Document = dict[str, Any]


@dataclass
class Files:
    """The files of a valid chain, in a folder, as options of the command."""

    folder: Path

    def __post_init__(self) -> None:
        self.write("genesis.json", chains.encoded(chains.genesis()))
        self.write("rollup.json", chains.encoded(chains.rollup()))
        self.write("chain.json", chains.encoded(chains.l1_chain()))
        self.write("batcher.key", f"0x{chains.BATCHER_KEY}\n".encode())
        self.write("proposer.key", f"{chains.PROPOSER_KEY}\n".encode())
        self.write("jwt.hex", f"{chains.JWT}\n".encode())
        self.write("url.txt", f"{URL}\n".encode())

    def write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def options(self, **changes: str | None) -> list[str]:
        """Everything that a chain needs; a change is another file, or none."""
        named = {
            "genesis": self.path("genesis.json"),
            "rollup": self.path("rollup.json"),
            "l1_chain": self.path("chain.json"),
            **changes,
        }
        found = {name: path for name, path in named.items() if path is not None}
        return [
            word for name, path in found.items() for word in (f"--{name.replace('_', '-')}", path)
        ]

    def with_keys(self, **changes: str | None) -> list[str]:
        """The same with both keys."""
        keys = {"batcher_key": self.path("batcher.key"), "proposer_key": self.path("proposer.key")}
        return self.options(**{**keys, **changes})

    def manifest(self, name: str = "chain", **changes: object) -> str:
        """The manifest of an OPChain; a change is a merge patch of its spec."""
        text = yaml.safe_dump(chains.opchain(name, **changes))
        return self.write("opchain.yaml", text.encode())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def made(text: str) -> dict[str, Document]:
    """The Secrets of an output by name, with their content decoded."""
    return {
        one["metadata"]["name"]: {key: b64decode(value) for key, value in one["data"].items()}
        for one in yaml.safe_load_all(text)
    }


def assert_silent(*texts: str) -> None:
    """Nothing that is secret is in what was said, in any way of writing it."""
    for secret in (chains.BATCHER_KEY, chains.PROPOSER_KEY, chains.STRANGER_KEY, chains.JWT, URL):
        hidden = (secret, b64encode(secret.encode()).decode()[:40], secret[-16:])
        for text in texts:
            assert not any(one in text for one in hidden)


def test_files_become_the_secrets_of_a_chain(pequod: Pequod, files: Files) -> None:
    options = files.with_keys(jwt=files.path("jwt.hex"), l1_url=files.path("url.txt"))
    done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml")
    assert made(done.stdout) == {
        "devnet-genesis": {"genesis.json": chains.encoded(chains.genesis())},
        "devnet-rollup": {"rollup.json": chains.encoded(chains.rollup())},
        "devnet-jwt": {"jwt": chains.JWT.encode()},
        "devnet-l1": {"chain.json": chains.encoded(chains.l1_chain())},
        "devnet-l1-url": {"url": URL.encode()},
        "devnet-batcher-key": {"key": f"0x{chains.BATCHER_KEY}".encode()},
        "devnet-proposer-key": {"key": chains.PROPOSER_KEY.encode()},
    }
    assert done.stderr == ""


def test_only_what_is_given_becomes_a_secret(pequod: Pequod, files: Files) -> None:
    """A JWT that is not given is made by the operator."""
    done = pequod("opchain", "secrets", "devnet", *files.options(), "-o", "yaml")
    assert made(done.stdout).keys() == {"devnet-genesis", "devnet-rollup", "devnet-l1"}


def test_secrets_can_be_printed_as_json(pequod: Pequod, files: Files) -> None:
    done = pequod("opchain", "secrets", "devnet", *files.options(), "-o", "json")
    (genesis, *_) = json.loads(done.stdout)["items"]
    assert (genesis["kind"], genesis["metadata"]["name"]) == ("Secret", "devnet-genesis")


def test_secrets_have_a_namespace_when_one_is_named(pequod: Pequod, files: Files) -> None:
    command = ("opchain", "secrets", "devnet", *files.options(), "-o", "yaml")
    for options, namespace in (((), None), (("-n", "team"), "team")):
        objects = yaml.safe_load_all(pequod(*command, *options).stdout)
        assert {one["metadata"].get("namespace") for one in objects} == {namespace}


def test_printing_twice_prints_the_same_bytes(pequod: Pequod, files: Files) -> None:
    large = files.write("large.json", chains.encoded(with_accounts(4000)))
    command = ("opchain", "secrets", "devnet", *files.options(genesis=large), "-o", "yaml")
    assert pequod(*command).stdout == pequod(*command).stdout


def with_accounts(count: int, *, noise: int = 0) -> Document:
    """A genesis with many accounts, each with code that cannot be packed."""
    rolling = random.Random(1)
    genesis = chains.genesis()
    for number in range(count):
        code = f"0x{rolling.randbytes(noise).hex() or '00'}"
        genesis["alloc"][f"{number:040x}"] = {"balance": "0x0", "code": code}
    return genesis


def test_a_large_genesis_is_packed(pequod: Pequod, files: Files) -> None:
    """op-deployer writes some nine megabytes, and a Secret holds one."""
    content = chains.encoded(with_accounts(20_000))
    assert len(content) > 2**20
    options = files.options(genesis=files.write("large.json", content))
    secret = made(pequod("opchain", "secrets", "devnet", *options, "-o", "yaml").stdout)
    (key, packed), *others = secret["devnet-genesis"].items()
    assert (key, others) == ("genesis.json.gz", [])
    assert gzip.decompress(packed) == content


def test_a_genesis_that_is_packed_already_stays_as_it_is(pequod: Pequod, files: Files) -> None:
    content = gzip.compress(chains.encoded(chains.genesis()))
    options = files.options(genesis=files.write("genesis.json.gz", content))
    secret = made(pequod("opchain", "secrets", "devnet", *options, "-o", "yaml").stdout)
    assert secret["devnet-genesis"] == {"genesis.json.gz": content}


@pytest.mark.parametrize("noise", [60, 200])
def test_a_genesis_that_cannot_be_run_is_refused(pequod: Pequod, files: Files, noise: int) -> None:
    """It would fit into a Secret, or not even that, but never into what the engine stores."""
    large = files.write("large.json", chains.encoded(with_accounts(8000, noise=noise)))
    done = pequod(
        "opchain", "secrets", "devnet", *files.options(genesis=large), "-o", "yaml", code=1
    )
    assert "large.json: cannot be run: node geth-config: the object is larger than" in done.stderr
    assert ("large.json: is too large for a Secret" in done.stderr) == (noise == 200)
    assert done.stdout == ""


def test_a_key_may_come_from_standard_input(pequod: Pequod, files: Files) -> None:
    command = ("opchain", "secrets", "devnet", *files.with_keys(batcher_key="-"), "-o", "yaml")
    secret = made(pequod(*command, stdin=f"{chains.BATCHER_KEY}\n").stdout)
    assert secret["devnet-batcher-key"] == {"key": chains.BATCHER_KEY.encode()}
    done = pequod(*command, stdin=chains.STRANGER_KEY, code=1)
    assert f"standard input: is the key of {chains.STRANGER}" in done.stderr
    assert_silent(done.stdout, done.stderr)


BAD: dict[str, tuple[str, bytes, str]] = {
    "no json": ("genesis", b"{", "bad: is not JSON"),
    "no object": ("rollup", b"[]", "bad: must be a JSON object"),
    "empty": ("rollup", b"", "bad: is not JSON"),
    "a bomb": (
        "genesis",
        gzip.compress(b" " * (40 << 20)),
        "bad: is more than 32 MiB when unpacked",
    ),
    "half a package": ("genesis", gzip.compress(b"{}" * 999)[:-9], "bad: is incomplete"),
    "another chain id": (
        "genesis",
        chains.encoded(chains.changed(chains.genesis(), ".config.chainId", 778)),
        "bad, .config.chainId: is 778, but .l2_chain_id of {folder}/rollup.json is 777",
    ),
    "no chain id": (
        "rollup",
        chains.encoded(chains.without(chains.rollup(), ".l2_chain_id")),
        "bad, .l2_chain_id: is missing",
    ),
    "another l1": (
        "l1_chain",
        chains.encoded(chains.changed(chains.l1_chain(), ".chainId", 5)),
        "bad, .chainId: is 5, but .l1_chain_id of {folder}/rollup.json is 1337",
    ),
    "a bad hash": (
        "rollup",
        chains.encoded(chains.changed(chains.rollup(), ".genesis.l2.hash", "0x12")),
        "bad, .genesis.l2.hash: must be 0x and 64 hexadecimal digits",
    ),
    "a zero address": (
        "rollup",
        chains.encoded(chains.changed(chains.rollup(), ".batch_inbox_address", f"0x{'0' * 40}")),
        "bad, .batch_inbox_address: must not be the zero address",
    ),
    "a fork that the genesis does not know": (
        "rollup",
        chains.encoded(chains.changed(chains.rollup(), ".jovian_time", 2_000_000_000)),
        "bad, .jovian_time: is 2000000000, but .config.jovianTime of {folder}/genesis.json is not",
    ),
    "a foreign key": (
        "batcher_key",
        chains.STRANGER_KEY.encode(),
        f"bad: is the key of {chains.STRANGER}, but {{folder}}/rollup.json, "
        f".genesis.system_config.batcherAddr is {chains.BATCHER}",
    ),
    "no key": ("proposer_key", b"swordfish", "bad: must be a private key"),
    "one key for both": (
        "proposer_key",
        chains.BATCHER_KEY.encode(),
        "bad: is the batcher's key as well",
    ),
    "a short jwt": ("jwt", chains.JWT[1:].encode(), "bad: must be 32 bytes"),
    "no url": ("l1_url", b"ftp://key@l1.example", "bad: must be an http or https URL"),
    "no addresses": ("l1_addresses", b"{}", "bad: names no contract"),
    "addresses that are no json": ("l1_addresses", b"0x", "bad: is not JSON"),
    "a bad address": (
        "l1_addresses",
        b'{"SystemConfigProxy": "0x12"}',
        "bad, .SystemConfigProxy: must be an address",
    ),
    "another contract": (
        "l1_addresses",
        chains.encoded({"OptimismPortalProxy": chains.STRANGER.lower()}),
        f"rollup.json, .deposit_contract_address: is {chains.OPTIMISM_PORTAL}, but "
        f"{{folder}}/bad, .OptimismPortalProxy is {chains.STRANGER}",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_with_the_file_and_the_place(
    pequod: Pequod, files: Files, case: str
) -> None:
    option, content, said = BAD[case]
    options = files.with_keys(**{option: files.write("bad", content)})
    done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml", code=1)
    (line,) = (one for one in done.stderr.splitlines() if one.startswith("error: "))
    assert said.format(folder=files.folder) in line
    assert "Secret" not in line.replace("for a Secret", "")
    assert done.stdout == ""
    assert_silent(done.stderr)


def test_everything_that_is_wrong_is_said_at_once(pequod: Pequod, files: Files) -> None:
    rollup = chains.changed(chains.changed(chains.rollup(), ".l2_chain_id", 778), ".block_time", 0)
    options = files.options(
        rollup=files.write("bad.json", chains.encoded(rollup)),
        l1_chain=None,
        jwt=files.write("bad.jwt", b"no"),
        batcher_key=files.write("bad.key", chains.STRANGER_KEY.encode()),
    )
    done = pequod("opchain", "secrets", "Devnet", *options, code=1)
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for one in (
        "metadata.name Devnet",
        "genesis.json, .config.chainId: is 777, but .l2_chain_id of",
        "bad.json, .block_time",
        "--l1-chain: is missing: op-node does not know the L1 with chain id 1337",
        "bad.jwt: must be 32 bytes",
        f"bad.key: is the key of {chains.STRANGER}",
    ):
        assert len([line for line in said if one in line]) == 1, one
    assert len(said) == 6
    assert "Nothing was made" in done.stderr
    assert_silent(done.stdout, done.stderr)


def test_a_chain_id_that_breaks_wallets_is_said(pequod: Pequod, files: Files) -> None:
    genesis = chains.changed(chains.genesis(), ".config.chainId", 2**62)
    rollup = chains.changed(chains.rollup(), ".l2_chain_id", 2**62)
    options = files.options(
        genesis=files.write("genesis", chains.encoded(genesis)),
        rollup=files.write("rollup", chains.encoded(rollup)),
    )
    done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml", code=1)
    assert "rollup, .l2_chain_id: is too large" in done.stderr


def test_files_that_were_mixed_up_are_not_shown(pequod: Pequod, files: Files) -> None:
    keys = (files.path("batcher.key"), files.path("proposer.key"), files.path("jwt.hex"))
    for key in keys:
        options = files.options(rollup=key, genesis=key, l1_chain=key, l1_addresses=key, l1_url=key)
        done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml", code=1)
        assert_silent(done.stdout, done.stderr)
    options = files.options(chain=files.path("jwt.hex"), jwt=files.path("genesis.json"))
    done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml", code=1)
    assert_silent(done.stdout, done.stderr)


def test_all_files_that_cannot_be_read_are_named(pequod: Pequod, files: Files) -> None:
    options = files.options(genesis=files.path("nowhere"), rollup=str(files.folder))
    done = pequod("opchain", "secrets", "devnet", *options, "-o", "yaml", code=1)
    assert f"--genesis: {files.path('nowhere')} cannot be read: No such file" in done.stderr
    assert f"--rollup: {files.folder} cannot be read: Is a directory" in done.stderr


def test_wrong_usage_ends_with_2(pequod: Pequod, files: Files) -> None:
    command = ("opchain", "secrets", "devnet")
    pequod(*command, code=2)
    pequod(*command, *files.options(genesis="-", rollup="-"), code=2)
    pequod(*command, *files.options(), "-o", "pdf", code=2)
    pequod(*command, *files.options(), "-o", "yaml", "--dry-run", code=2)
    pequod(*command, *files.options(), "-o", "yaml", "--overwrite", code=2)
    both = files.options(chain=files.manifest(), l1_addresses=files.path("rollup.json"))
    pequod(*command, *both, code=2)


def test_help_says_what_each_option_is_for(pequod: Pequod) -> None:
    said = pequod("opchain", "secrets", "--help").stdout
    for word in ("genesis", "rollup", "jwt", "batcher-key", "l1-chain", "l1-url", "chain"):
        assert f"--{word} " in said
    assert "Exit code 0" in said
    assert "secrets" in pequod("opchain", "--help").stdout


def test_a_manifest_says_how_its_secrets_are_called(pequod: Pequod, files: Files) -> None:
    config = {"genesisConfigSecret": "config", "rollupConfigSecret": "config", "jwtSecret": None}
    chain = files.manifest(
        l1={"rpcUrl": None, "rpcUrlSecretRef": {"name": "l1", "key": "there"}},
        l2=config,
        components={"batcher": {"signerPrivateKeySecret": "payer"}},
    )
    more = {"jwt": files.path("jwt.hex"), "l1_url": files.path("url.txt")}
    options = files.with_keys(chain=chain, proposer_key=None, **more)
    secrets = made(pequod("opchain", "secrets", "chain", *options, "-o", "yaml").stdout)
    assert {name: {*data} for name, data in secrets.items()} == {
        "config": {"genesis.json", "rollup.json"},
        "chain-jwt": {"jwt"},
        "chain-l1": {"chain.json"},
        "l1": {"there"},
        "payer": {"key"},
    }


def test_the_namespace_of_a_manifest_is_that_of_its_secrets(pequod: Pequod, files: Files) -> None:
    chain = {**chains.opchain(), "metadata": {"name": "chain", "namespace": "team"}}
    options = files.options(chain=files.write("opchain.yaml", yaml.safe_dump(chain).encode()))
    command = ("opchain", "secrets", "chain", *options, "-o", "yaml")
    objects = yaml.safe_load_all(pequod(*command).stdout)
    assert {one["metadata"]["namespace"] for one in objects} == {"team"}
    assert "metadata.namespace of the OPChain is team" in pequod(*command, "-n", "a", code=1).stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"l2": {"chainId": 778}}, "rollup.json, .l2_chain_id: is 777, but spec.l2.chainId is 778"),
        ({"l1": {"chainId": 1}}, "chain.json, .chainId: is 1337, but spec.l1.chainId is 1"),
        (
            {"l1": {"contractAddresses": {"systemConfig": chains.SYSTEM_CONFIG.lower()}}},
            "opchain.yaml, spec.l1.contractAddresses.systemConfig: has no checksum: write "
            + chains.SYSTEM_CONFIG,
        ),
        (
            {"l1": {"contractAddresses": {"batcher": chains.STRANGER}}},
            f"batcher.key: is the key of {chains.BATCHER}, but spec.l1.contractAddresses.batcher "
            f"is {chains.STRANGER}",
        ),
        (
            {"l1": {"chainConfigSecret": None}},
            "chain.json: nothing would read it: the OPChain has no spec.l1.chainConfigSecret",
        ),
        (
            {"components": {"proposer": {"signerPrivateKeySecret": "chain-batcher-key"}}},
            "proposer.key: another file goes to key of Secret chain-batcher-key as well",
        ),
        ({"l2": {"chainId": "777"}}, "opchain.yaml: Expected `int`, got `str` - at `$.spec.l2"),
    ],
)
def test_what_does_not_fit_a_manifest_is_said(
    pequod: Pequod, files: Files, changes: Document, said: str
) -> None:
    options = files.with_keys(chain=files.manifest(**changes))
    done = pequod("opchain", "secrets", "chain", *options, "-o", "yaml", code=1)
    assert said in done.stderr
    assert done.stdout == ""
    assert_silent(done.stderr)


def test_a_secret_that_is_made_elsewhere_need_not_be_given(pequod: Pequod, files: Files) -> None:
    options = files.options(chain=files.manifest(), l1_chain=None)
    secrets = made(pequod("opchain", "secrets", "chain", *options, "-o", "yaml").stdout)
    assert secrets.keys() == {"chain-genesis", "chain-rollup"}


def test_a_new_batcher_is_checked_against_the_manifest(pequod: Pequod, files: Files) -> None:
    chain = files.manifest(l1={"contractAddresses": {"batcher": chains.STRANGER}})
    key = files.write("new.key", chains.STRANGER_KEY.encode())
    options = files.options(chain=chain, batcher_key=key)
    secrets = made(pequod("opchain", "secrets", "chain", *options, "-o", "yaml").stdout)
    assert secrets["chain-batcher-key"] == {"key": chains.STRANGER_KEY.encode()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [", "opchain.yaml: is not YAML"),
        (b"\xff\xfe\x00", "opchain.yaml: is not YAML"),
        (b"kind: ConfigMap", "opchain.yaml: holds no OPChain"),
        (b"- a\n---\n", "opchain.yaml: holds no OPChain"),
        (yaml.safe_dump(chains.opchain("other")).encode(), "holds OPChain other, and not chain"),
    ],
)
def test_a_manifest_that_is_none_is_said(
    pequod: Pequod, files: Files, text: bytes, said: str
) -> None:
    options = files.options(chain=files.write("opchain.yaml", text))
    done = pequod("opchain", "secrets", "chain", *options, "-o", "yaml", code=1)
    assert said in done.stderr
