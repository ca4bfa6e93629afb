"""`pequod opchain secrets` against a real API server."""

import secrets as random
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

import chains
from clusters import Api, SharedControlPlane
from commandline import Pequod
from pequod.controllers.rollup.configuration import KEY, PACKED_GENESIS

OPTIONS = {
    "genesis": "genesis",
    "rollup": "rollup",
    "l1": "l1-chain",
    "batcher-key": "batcher-key",
    "proposer-key": "proposer-key",
}
"""Secrets of a chain, and the options that their content is given by."""
DATA = {
    "devnet-genesis": {"genesis.json"},
    "devnet-rollup": {"rollup.json"},
    "devnet-l1": {"chain.json"},
    "devnet-batcher-key": {"key"},
    "devnet-proposer-key": {"key"},
}


@pytest.fixture
def api(control_plane: SharedControlPlane) -> Api:
    return control_plane.api


@pytest.fixture
def namespace(api: Api) -> str:
    name = f"test-{random.token_hex(4)}"
    assert api.create("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    return name


@pytest.fixture
def pequod(api: Api, tmp_path: Path) -> Pequod:
    return Pequod(tmp_path, api.kubeconfig)


@pytest.fixture
def command(tmp_path: Path, namespace: str) -> list[str]:
    """The command line for a valid chain."""
    words = ["opchain", "secrets", "devnet", "-n", namespace]
    for secret in chains.secrets("devnet"):
        option = OPTIONS.get(secret["metadata"]["name"].removeprefix("devnet-"))
        if option is not None:
            (text,) = secret["stringData"].values()
            (tmp_path / option).write_text(text)
            words += [f"--{option}", str(tmp_path / option)]
    return words


def written(folder: Path, option: str, content: bytes) -> tuple[str, str]:
    """An option that replaces one of a command line."""
    path = folder / f"other-{option}"
    path.write_bytes(content)
    return f"--{option}", str(path)


def stored(api: Api, namespace: str) -> dict[str, dict[str, Any]]:
    items = api.get(f"/api/v1/namespaces/{namespace}/secrets").body["items"]
    return {one["metadata"]["name"]: one for one in items}


def held(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: b64decode(value) for key, value in secret["data"].items()}


def assert_silent(*texts: str) -> None:
    for text in texts:
        for secret in (chains.BATCHER_KEY, chains.PROPOSER_KEY, chains.STRANGER_KEY):
            assert secret not in text
            assert b64encode(secret.encode()).decode()[:40] not in text


def test_secrets_are_made_and_an_opchain_for_them_is_printed(
    pequod: Pequod, api: Api, namespace: str, command: list[str]
) -> None:
    done = pequod(*command)
    found = stored(api, namespace)
    assert {name: {*one["data"]} for name, one in found.items()} == DATA
    assert held(found["devnet-genesis"])["genesis.json"] == chains.encoded(chains.genesis())
    assert f"Secret {namespace}/devnet-batcher-key created: key of {chains.BATCHER}" in done.stderr
    assert_silent(done.stdout, done.stderr)
    chain = yaml.safe_load(done.stdout)
    path = f"/apis/rollup.oplabs.io/v1alpha1/namespaces/{namespace}/opchains"
    refused = api.create(path, chain, dry_run=True)
    assert refused.code == 422, "what stands in <> must be filled in"
    assert "fill in what stands in <>" in done.stderr
    chain["spec"]["l1"]["rpcUrl"] = chains.L1_URL
    chain["spec"]["l1"]["contractAddresses"]["disputeGameFactory"] = chains.DISPUTE_GAME_FACTORY
    accepted = api.create(path, chain, dry_run=True)
    assert accepted.code == 201, accepted.message


def test_on_an_l1_with_blobs_the_opchain_asks_for_its_beacon(
    pequod: Pequod, command: list[str], tmp_path: Path
) -> None:
    sepolia = 11_155_111
    rollup = chains.changed(chains.rollup(), ".l1_chain_id", sepolia)
    l1 = chains.changed(chains.l1_chain(), ".chainId", sepolia)
    done = pequod(
        *command,
        *written(tmp_path, "rollup", chains.encoded(rollup)),
        *written(tmp_path, "l1-chain", chains.encoded(l1)),
        "--dry-run",
    )
    assert yaml.safe_load(done.stdout)["spec"]["l1"]["beaconUrl"].startswith("<beacon API of L1")


@pytest.mark.parametrize(
    "names",
    [
        {"SystemConfigProxy": "DisputeGameFactoryProxy", "AddressManagerImpl": ""},
        {"systemConfigProxyAddress": "disputeGameFactoryProxyAddress", "addressManagerAddress": ""},
    ],
)
def test_the_addresses_of_op_deployer_are_written_into_the_opchain(
    pequod: Pequod,
    api: Api,
    namespace: str,
    command: list[str],
    tmp_path: Path,
    names: dict[str, str],
) -> None:
    """Both as new versions print them and as old ones do, always without checksums."""
    (config, factory), (manager, _) = names.items()
    known = {
        config: chains.SYSTEM_CONFIG.lower(),
        factory: chains.DISPUTE_GAME_FACTORY.lower(),
        manager: chains.STRANGER.lower(),
        "L2OutputOracleProxy": f"0x{'0' * 40}",
    }
    document = known if config[0].isupper() else {"opChainDeployment": known}
    url = written(tmp_path, "l1-url", b"https://l1.example/key")
    addresses = written(tmp_path, "l1-addresses", chains.encoded(document))
    done = pequod(*command, *url, *addresses)
    chain = yaml.safe_load(done.stdout)
    assert chain["spec"]["l1"]["contractAddresses"] == {
        "optimismPortal": chains.OPTIMISM_PORTAL,
        "systemConfig": chains.SYSTEM_CONFIG,
        "disputeGameFactory": chains.DISPUTE_GAME_FACTORY,
        "addressManager": chains.STRANGER,
    }
    path = f"/apis/rollup.oplabs.io/v1alpha1/namespaces/{namespace}/opchains"
    accepted = api.create(path, chain, dry_run=True)
    assert accepted.code == 201, accepted.message
    assert "l1.example" not in done.stdout + done.stderr


def test_a_second_run_changes_nothing(
    pequod: Pequod, api: Api, namespace: str, command: list[str]
) -> None:
    pequod(*command)
    before = stored(api, namespace)
    done = pequod(*command)
    assert done.stderr.count(" unchanged: ") == len(DATA)
    assert stored(api, namespace) == before


def test_what_holds_something_else_is_left_alone(
    pequod: Pequod, api: Api, namespace: str, command: list[str], tmp_path: Path
) -> None:
    """Not even what is missing is made: the next run may be another one."""
    pequod(*command)
    api.call("DELETE", f"/api/v1/namespaces/{namespace}/secrets/devnet-l1")
    before = stored(api, namespace)
    rollup = chains.changed(chains.rollup(), ".seq_window_size", 7200)
    other = written(tmp_path, "rollup", chains.encoded(rollup))
    done = pequod(*command, *other, code=1)
    said = "Secret devnet-rollup is there already, with another rollup.json\n"
    assert f"error: {said}" in done.stderr
    assert "--overwrite" in done.stderr
    assert done.stdout == ""
    assert_silent(done.stderr)
    assert stored(api, namespace) == before


def test_what_is_to_be_overwritten_keeps_everything_else(
    pequod: Pequod, api: Api, namespace: str, command: list[str], tmp_path: Path
) -> None:
    pequod(*command)
    path = f"/api/v1/namespaces/{namespace}/secrets/devnet-genesis"
    api.patch(path, {"metadata": {"labels": {"mine": "yes"}}, "data": {"more": "bW9yZQ=="}})
    before = stored(api, namespace)
    genesis = chains.genesis()
    genesis["alloc"] |= {f"{number:040x}": {"balance": "0x0"} for number in range(3000)}
    large = written(tmp_path, "genesis", chains.encoded(genesis))
    done = pequod(*command, *large, "--overwrite")
    assert f"Secret {namespace}/devnet-genesis overwritten: genesis.json.gz" in done.stderr
    after = stored(api, namespace)
    changed = after.pop("devnet-genesis")
    assert {*changed["data"]} == {PACKED_GENESIS, "more"}, "of both ways only one is kept"
    assert changed["metadata"]["labels"]["mine"] == "yes"
    assert changed["metadata"]["uid"] == before.pop("devnet-genesis")["metadata"]["uid"]
    assert after == before


def test_a_key_is_rotated_by_overwriting_it(
    pequod: Pequod, api: Api, namespace: str, command: list[str], tmp_path: Path
) -> None:
    pequod(*command)
    new = written(tmp_path, "proposer-key", chains.STRANGER_KEY.encode())
    done = pequod(*command, *new, "--overwrite")
    assert f"devnet-proposer-key overwritten: key of {chains.STRANGER}" in done.stderr
    assert_silent(done.stdout, done.stderr)
    assert held(stored(api, namespace)["devnet-proposer-key"])[KEY] == chains.STRANGER_KEY.encode()


def test_a_dry_run_says_what_it_would_do_and_stores_nothing(
    pequod: Pequod, api: Api, namespace: str, command: list[str]
) -> None:
    done = pequod(*command, "--dry-run")
    assert done.stderr.count(" would be created: ") == len(DATA)
    assert stored(api, namespace) == {}


def test_nothing_is_made_of_invalid_files(
    pequod: Pequod, api: Api, namespace: str, command: list[str], tmp_path: Path
) -> None:
    other = written(tmp_path, "batcher-key", chains.STRANGER_KEY.encode())
    done = pequod(*command, *other, "--overwrite", code=1)
    assert f"is the key of {chains.STRANGER}" in done.stderr
    assert stored(api, namespace) == {}


def test_nothing_is_made_when_the_api_server_refuses_a_part_of_it(
    pequod: Pequod, api: Api, namespace: str, command: list[str]
) -> None:
    metadata = {"name": "devnet-proposer-key"}
    fixed = {"metadata": metadata, "immutable": True, "stringData": {"key": "other"}}
    assert api.create(f"/api/v1/namespaces/{namespace}/secrets", fixed).code == 201
    done = pequod(*command, "--overwrite", code=1)
    assert "immutable" in done.stderr
    assert stored(api, namespace).keys() == {"devnet-proposer-key"}
    assert_silent(done.stdout, done.stderr)


def test_a_namespace_that_is_not_there_and_a_cluster_that_is_not_there_end_with_1(
    pequod: Pequod, command: list[str], tmp_path: Path
) -> None:
    done = pequod(*command, "-n", "nowhere", code=1)
    assert 'namespaces "nowhere" not found' in done.stderr
    done = pequod(*command, "--kubeconfig", str(tmp_path / "nowhere"), code=1)
    assert "no kubeconfig was found" in done.stderr


def test_with_a_manifest_the_next_step_is_to_apply_it(
    pequod: Pequod, command: list[str], tmp_path: Path, namespace: str
) -> None:
    chain = chains.opchain("devnet", l1={"rpcUrl": chains.L1_URL})
    path = tmp_path / "opchain.yaml"
    path.write_text(yaml.safe_dump(chain))
    done = pequod(*command, "--chain", str(path))
    assert done.stdout == ""
    assert "The chain waits for devnet-jwt as well, unless they are there already" in done.stderr
    assert f"Next: kubectl apply -n {namespace} -f {path}" in done.stderr
