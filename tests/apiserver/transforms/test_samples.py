"""The samples of the platform family do what the comment at their top says."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

import evaluators
from doubles.gitserver import GitServer
from doubles.registry import RegistryServer
from doubles.registry import running as registry_running
from pequod.dev.programs import find_add_ons
from pequod.evaluator.registry import BOUNDS, Registry
from pequod.kube.addresses import AddressRule
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.resolver import Reference
from pequod.sources.store import Store
from schemas import ROOT, load
from transforms import MODULES, Object, StartPlatform, Transforms
from waiting import until

FOLDER = ROOT / "deploy/samples/platform"
POLICIES = Reference(type="embedded", ref="policy")
DEPLOYMENTS = "apps/v1/deployments"
BY_THEMSELVES = {
    "webservice": ("shop", 5),
    "database": ("shop-db", 9),
    "inline": ("settings", 2),
    "configmap": ("greeting", 1),
    "rollback": ("steady", 1),
    "values": ("addresses", 2),
}
"""Samples that need nothing else: what their Transform is called, and of how many objects."""
WITH_A_STORY = {"violation", "git", "oci", "adoption"}


def documents(sample: str) -> dict[str, Object]:
    """What a sample holds, by kind and name."""
    found = load(FOLDER / f"{sample}.yaml")
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


def apply(transforms: Transforms, folder: Path, given: dict[str, Object]) -> None:
    """Apply as people do it."""
    file = folder / "sample.yaml"
    file.write_text(yaml.safe_dump_all(given.values()))
    transforms.api.kubectl("apply", f"--namespace={transforms.namespace}", f"--filename={file}")


def test_every_sample_has_a_test_and_says_what_to_try() -> None:
    files = sorted(FOLDER.iterdir())
    assert {file.stem for file in files} == BY_THEMSELVES.keys() | WITH_A_STORY
    assert all(file.read_text().startswith("# ") for file in files)


@pytest.mark.parametrize("sample", BY_THEMSELVES)
async def test_a_sample_becomes_a_tree_of_ready_objects(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path, sample: str
) -> None:
    name, count = BY_THEMSELVES[sample]
    apply(transforms, tmp_path, documents(sample))
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, name))
    nodes = transforms.status(f"transform-{name}")["nodeStatus"]
    assert [node["phase"] for node in nodes.values()] == ["Ready"] * count
    assert "violations" not in transforms.told(name)


async def test_the_password_of_the_database_is_nowhere_and_its_volumes_outlive_it(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    given = documents("database")
    password = given["Secret/shop-db"]["stringData"]["password"]
    apply(transforms, tmp_path, given)
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "shop-db"))
        kept = (transforms.transform("shop-db"), transforms.get("transform-shop-db"))
        assert password not in str((*kept, transforms.kept()))
        transforms.end("shop-db")
        await until(partial(transforms.is_gone, "shop-db"))
    claims = transforms.api.get(transforms.path("persistentvolumeclaims")).body["items"]
    assert {one["metadata"]["name"] for one in claims} == {"shop-db-data", "shop-db-backup"}
    assert transforms.find("apps/v1/statefulsets", "shop-db") is None


async def test_the_violations_are_all_said_and_an_override_lets_one_pass(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    apply(transforms, tmp_path, documents("violation"))
    async with platform(policies=POLICIES):
        await until(partial(transforms.because, "typo", "Violated", "Validated"))
        await until(partial(transforms.because, "greedy", "Violated", "Validated"))
        paths = [one["path"] for one in transforms.told("typo")["violations"]]
        assert paths == ["input.imag", "input.image", "input.port"]
        assert "policy resource-limits" in str(transforms.told("greedy")["violations"])
        assert not transforms.exists("transform-typo")
        assert not transforms.exists("transform-greedy")
        assert transforms.kept() == []
        override = {"name": "resource-limits", "parameters": {"maxMemory": "200Gi"}}
        transforms.alter("greedy", policies=[override])
        await until(lambda: transforms.find(DEPLOYMENTS, "greedy") is not None)


async def test_the_inline_module_says_itself_what_is_wrong(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    given = documents("inline")
    given["Transform/settings"]["spec"]["input"]["environments"] = []
    apply(transforms, tmp_path, given)
    async with platform(policies=POLICIES):
        await until(partial(transforms.because, "settings", "Violated", "Validated"))
    assert "name at least one environment" in transforms.says("settings")["message"]


async def test_the_module_in_a_config_map_is_rendered_again_when_it_changes(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    given = documents("configmap")
    apply(transforms, tmp_path, given)
    text = given["ConfigMap/greeting-module"]["data"]["graph.cue"]
    changed = text.replace("input.message", '"\\(input.message), world"')
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "greeting"))
        transforms.edit("configmaps", "greeting-module", {"data": {"graph.cue": changed}})
        await until(
            lambda: transforms.live("configmaps", "greeting")["data"]["message"] == "hello, world"
        )


async def test_the_config_map_has_the_address_of_the_service_and_follows_it(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    def follows() -> bool:
        service = transforms.find("services", "addresses")
        if service is None:
            return False
        address = service["spec"]["clusterIP"]
        data = transforms.live("configmaps", "addresses")["data"]
        return bool(data == {"host": address, "url": f"http://{address}:8080/addresses"})

    apply(transforms, tmp_path, documents("values"))
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "addresses"))
        assert follows()
        before = transforms.live("services", "addresses")["metadata"]["uid"]
        transforms.remove("services", "addresses")
        await until(lambda: follows() and transforms.uid("services", "addresses") != before)


async def test_the_adoption_is_rehearsed_first_and_keeps_the_deployment(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    apply(transforms, tmp_path, documents("adoption"))
    before = transforms.uid(DEPLOYMENTS, "legacy")
    async with platform(policies=POLICIES):
        await until(partial(transforms.because, "legacy", "DryRun", "Executed"))
        assert "would be adopted" in transforms.says("legacy")["message"]
        assert transforms.find("services", "legacy") is None
        transforms.alter("legacy", adopt={"dryRun": False})
        await until(partial(transforms.is_done, "legacy"))
        live = transforms.live(DEPLOYMENTS, "legacy")
        assert live["metadata"]["uid"] == before
        assert "made-by" not in live["metadata"]["labels"]
        (container,) = live["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example.com/legacy:1.0.0"
        transforms.end("legacy")
        await until(partial(transforms.is_gone, "legacy"))
    assert transforms.find(DEPLOYMENTS, "legacy") is None


async def test_a_revision_that_finds_no_node_is_given_up_once(
    transforms: Transforms, platform: StartPlatform, tmp_path: Path
) -> None:
    """The deadline of the sample is a minute: for people, not for tests."""
    given = documents("rollback")
    given["Transform/steady"]["spec"]["rollout"]["deadline"] = "5s"
    apply(transforms, tmp_path, given)
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "steady"))
        image = given["Transform/steady"]["spec"]["input"]["image"]
        transforms.alter("steady", input={"image": image, "disk": "none-has-this"})
        await until(partial(transforms.because, "steady", "RolledBack"))
        pods = transforms.live(DEPLOYMENTS, "steady")["spec"]["template"]["spec"]
        assert "nodeSelector" not in pods
        marks = [(one["revision"], one["failed"]) for one in transforms.told("steady")["revisions"]]
        assert marks == [(2, True), (1, False)]
        # The graph: as it was made, the new one, and the old one again.
        assert transforms.get("transform-steady")["metadata"]["generation"] == 3


@pytest.fixture
async def git(tmp_path: Path) -> AsyncIterator[GitServer]:
    """The server of the sample, with the shipped module in a folder and a tag on it."""
    secret = documents("git")["Secret/platform-git"]["stringData"]
    server = GitServer(tmp_path / "served", password=(secret["username"], secret["password"]))
    await server.start()
    module = MODULES / "webservice"
    files = {
        f"webservice/{path.relative_to(module)}": path.read_text() for path in module.rglob("*.cue")
    }
    repository = server.repository("platform/modules")
    repository.tag("v1", repository.commit(files))
    yield server
    await server.stop()


async def test_the_module_of_the_git_sample_is_fetched_with_its_secret(
    transforms: Transforms, platform: StartPlatform, git: GitServer, tmp_path: Path
) -> None:
    given = documents("git")
    given["Secret/platform-git"]["stringData"]["ca.crt"] = git.authority.certificate.decode()
    reference = given["Transform/shop-from-git"]["spec"]["cueRef"]
    reference["ref"] = reference["ref"].replace("git.example.com", f"127.0.0.1:{git.port}")
    apply(transforms, tmp_path, given)
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "shop-from-git"))
    assert all(one.authorization for one in git.fetches)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    command = asyncio.run(find_add_ons(lambda _: None)).command("registry")
    with registry_running(command, tmp_path_factory.mktemp("registry")) as port:
        yield port


@pytest.fixture
async def registry(upstream: int, tmp_path: Path) -> AsyncIterator[RegistryServer]:
    """The registry of the sample, which wants its password, with the shipped module in it."""
    host = f"127.0.0.1:{upstream}"
    options = OciOptions(rule=AddressRule(allow_local=True), plain_http=frozenset({host}))
    store = Store(tmp_path / "pushing")
    await store.open()
    async with evaluators.pool(network=True, bounds=BOUNDS) as pool:
        try:
            source = OciSource(store, Registry(pool), options)
            await source.push(MODULES / "webservice", f"{host}/platform/webservice:v1")
        finally:
            store.close()
    server = RegistryServer(upstream, password=("robot", "a token that may pull"))
    await server.start()
    yield server
    await server.stop()


async def test_the_module_of_the_oci_sample_is_fetched_with_its_secret(
    transforms: Transforms, platform: StartPlatform, registry: RegistryServer, tmp_path: Path
) -> None:
    given = documents("oci")
    login = given["Secret/platform-registry"]["stringData"]
    for place, key in (
        (login, ".dockerconfigjson"),
        (given["Transform/shop-from-registry"]["spec"]["cueRef"], "ref"),
    ):
        place[key] = place[key].replace("registry.example.com", registry.host)
    login["ca.crt"] = registry.authority.certificate.decode()
    apply(transforms, tmp_path, given)
    async with platform(policies=POLICIES):
        await until(partial(transforms.is_done, "shop-from-registry"))
    assert any(one.authorization for one in registry.journal)
