"""Every way to a module, and what becomes of one that moves."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

import evaluators
from doubles.gitserver import GitServer
from doubles.registry import running as registry_running
from pequod.dev.programs import find_add_ons
from pequod.evaluator.registry import BOUNDS, Registry
from pequod.kube.addresses import AddressRule
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.store import Store
from transforms import MAPS, StartPlatform, Transforms
from waiting import until

ADA = ("ada", "lovelace")
NOW = "reconcile.pequod.io/requestedAt"


@pytest.fixture
async def git(tmp_path: Path) -> AsyncIterator[GitServer]:
    """A server that wants a password, with the maps in a folder."""
    server = GitServer(tmp_path / "served", password=ADA)
    await server.start()
    server.repository().commit({"modules/maps/module.cue": MAPS})
    yield server
    await server.stop()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = asyncio.run(find_add_ons(lambda _: None)).command("registry")
    with registry_running(command, tmp_path_factory.mktemp("registry")) as port:
        yield f"127.0.0.1:{port}"


async def push(registry: str, name: str, text: str, folder: Path) -> str:
    """Put a module into a registry; yields its digest."""
    root = folder / uuid4().hex
    evaluators.write(root, {"module.cue": text, "cue.mod/module.cue": _MODULE})
    options = OciOptions(rule=AddressRule(allow_local=True), plain_http=frozenset({registry}))
    store = Store(folder / "pushing")
    await store.open()
    async with evaluators.pool(network=True, bounds=BOUNDS) as pool:
        try:
            return await OciSource(store, Registry(pool), options).push(root, f"{registry}/{name}")
        finally:
            store.close()


_MODULE = 'module: "example.org/maps@v0"\nlanguage: version: "v0.9.0"\n'


def secret_of(server: GitServer, **more: str) -> dict[str, object]:
    data = {"username": ADA[0], "password": ADA[1], **more}
    data["ca.crt"] = server.authority.certificate.decode()
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "pull"}, "data": encoded}


async def test_a_module_in_git_is_fetched_with_its_secret_and_followed(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    url = f"https://127.0.0.1:{git.port}/app.git?ref=main&path=modules/maps"
    reference = {"type": "git", "ref": url, "pullSecretRef": {"name": "pull"}}
    transforms.ask("web", {"value": "a"}, cueRef=reference, interval="1h")
    async with platform():
        await until(partial(transforms.because, "web", "SecretNotFound", "Fetched"))
        transforms.make("secrets", secret_of(git, password="wrong"))
        await until(partial(transforms.because, "web", "SourceDenied", "Fetched"))
        transforms.remove("secrets", "pull")
        transforms.make("secrets", secret_of(git))
        await until(partial(transforms.is_done, "web"))
        first = transforms.told("web")["resolvedCueRef"]["digest"]
        changed = MAPS.replace("data: value: input.value", 'data: value: "\\(input.value)!"')
        git.repository().commit({"modules/maps/module.cue": changed})
        transforms.annotate("web", **{NOW: "1"})
        await until(lambda: transforms.value("web-0") == "a!")
        await until(lambda: transforms.told("web")["resolvedCueRef"]["digest"] != first)
    assert transforms.told("web")["lastHandledReconcileAt"] == "1"
    assert ADA[1] not in str(transforms.transform("web"))


async def test_a_module_under_a_tag_that_moves_is_rendered_again_and_one_by_digest_is_not(
    transforms: Transforms, platform: StartPlatform, registry: str, tmp_path: Path
) -> None:
    name = f"team/maps-{uuid4().hex[:8]}"
    digest = await push(registry, f"{name}:v1", MAPS, tmp_path)
    moving = {"type": "oci", "ref": f"oci://{registry}/{name}:v1"}
    pinned = {"type": "oci", "ref": f"{registry}/{name}@{digest}"}
    transforms.ask("moving", {"value": "a"}, cueRef=moving, interval="1s")
    transforms.ask("pinned", {"value": "a"}, cueRef=pinned, interval="1s")
    async with platform(plain_http=frozenset({registry})):
        await until(partial(transforms.is_done, "moving"))
        await until(partial(transforms.is_done, "pinned"))
        changed = MAPS.replace("data: value: input.value", 'data: value: "\\(input.value)!"')
        await push(registry, f"{name}:v1", changed, tmp_path)
        await until(lambda: transforms.value("moving-0") == "a!")
        await until(lambda: transforms.revisions("moving") == [2, 1])
    assert transforms.value("pinned-0") == "a"


async def test_a_config_map_is_a_module_and_its_changes_are_heard(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"}, cueRef={"type": "configmap", "ref": "maps"})
    async with platform():
        await until(partial(transforms.because, "web", "SourceMissing", "Fetched"))
        transforms.make("configmaps", {"metadata": {"name": "maps"}, "data": {"m.cue": MAPS}})
        await until(partial(transforms.is_done, "web"))
        changed = MAPS.replace("data: value: input.value", 'data: value: "\\(input.value)!"')
        transforms.edit("configmaps", "maps", {"data": {"m.cue": changed}})
        await until(lambda: transforms.value("web-0") == "a!")


async def test_a_source_that_is_away_leaves_what_runs_and_says_so(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    url = f"https://127.0.0.1:{git.port}/app.git?ref=main&path=modules/maps"
    reference = {"type": "git", "ref": url, "pullSecretRef": {"name": "pull"}}
    transforms.make("secrets", secret_of(git))
    transforms.ask("web", {"value": "a"}, cueRef=reference)
    async with platform():
        await until(partial(transforms.is_done, "web"))
        await git.stop()
        transforms.annotate("web", **{NOW: "1"})
        await until(lambda: transforms.says("web", "Fetched").get("status") == "False")
        assert transforms.is_done("web"), "what runs is as Ready as before"
    assert transforms.value("web-0") == "a"
