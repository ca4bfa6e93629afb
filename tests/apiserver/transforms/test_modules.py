"""Every way to a module, and what becomes of one that moves."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from aiohttp import web

import evaluators
from doubles.gitserver import GitServer
from doubles.registry import running as registry_running
from pequod.base.backoff import Backoff
from pequod.dev.programs import find_add_ons
from pequod.evaluator.registry import BOUNDS, Registry
from pequod.kube.addresses import AddressRule
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.store import Store
from transforms import MAPS, STUCK, StartPlatform, Transforms
from waiting import until

ADA = ("ada", "lovelace")
NOW = "reconcile.pequod.io/requestedAt"
GRAPH = "transform-web"


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


def in_git(server: GitServer, name: str = "maps") -> dict[str, object]:
    """The reference to a module of the server, which needs the Secret `pull`."""
    url = f"https://127.0.0.1:{server.port}/app.git?ref=main&path=modules/{name}"
    return {"type": "git", "ref": url, "pullSecretRef": {"name": "pull"}}


def secret_of(server: GitServer, **more: str) -> dict[str, object]:
    data = {"username": ADA[0], "password": ADA[1], **more}
    data["ca.crt"] = server.authority.certificate.decode()
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "pull"}, "data": encoded}


async def test_a_module_in_git_is_fetched_with_its_secret_and_followed(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git), interval="1h")
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
    transforms.make("secrets", secret_of(git))
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git))
    async with platform():
        await until(partial(transforms.is_done, "web"))
        await git.stop()
        transforms.annotate("web", **{NOW: "1"})
        await until(lambda: transforms.says("web", "Fetched").get("status") == "False")
        assert transforms.is_done("web"), "what runs is as Ready as before"
    assert transforms.value("web-0") == "a"


async def test_a_source_that_is_slow_leaves_what_runs_ready_until_it_has_answered(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    asked, answers = asyncio.Event(), asyncio.Event()

    async def hesitate(_request: web.Request) -> None:
        asked.set()
        await answers.wait()

    transforms.make("secrets", secret_of(git))
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git))
    async with platform():
        await until(partial(transforms.is_done, "web"))
        changed = MAPS.replace("data: value: input.value", 'data: value: "\\(input.value)!"')
        git.repository().commit({"modules/maps/module.cue": changed})
        git.behaviour = hesitate
        transforms.annotate("web", **{NOW: "1"})
        await asked.wait()
        transforms.annotate("web", **{NOW: "2"})
        transforms.alter("web", interval="20m")
        await until(lambda: transforms.told("web")["observedGeneration"] == 2)
        assert transforms.is_done("web"), transforms.says("web")
        assert transforms.told("web")["phase"] == "Ready"
        assert transforms.value("web-0") == "a"
        assert transforms.told("web")["lastHandledReconcileAt"] == "1", "it is still being asked"
        answers.set()
        await until(lambda: transforms.told("web").get("lastHandledReconcileAt") == "2")
        await until(lambda: transforms.value("web-0") == "a!")


async def test_a_source_that_was_away_is_not_called_back_before_it_has_answered(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    """What is said of it does not change with every try."""

    async def fail(_request: web.Request) -> web.Response:
        return web.Response(status=503)

    transforms.make("secrets", secret_of(git))
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git))
    async with platform():
        await until(partial(transforms.is_done, "web"))
        git.behaviour = fail
        transforms.annotate("web", **{NOW: "1"})
        await until(partial(transforms.because, "web", "SourceUnavailable", "Fetched"))
        git.behaviour = git.stall
        transforms.annotate("web", **{NOW: "2"})
        transforms.alter("web", interval="20m")
        await until(lambda: transforms.told("web")["observedGeneration"] == 2)
        assert transforms.because("web", "SourceUnavailable", "Fetched")
        assert transforms.told("web")["lastHandledReconcileAt"] == "1", "it is still being asked"


async def test_what_is_resumed_is_executed_although_its_source_is_away(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    transforms.make("secrets", secret_of(git))
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git))
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", suspend=True)
        await until(lambda: transforms.get(GRAPH)["spec"].get("suspend") is True)
        await git.stop()
        transforms.edit("configmaps", "web-0", {"data": {"value": "theirs"}})
        transforms.alter("web", suspend=False, input={"value": "b"})
    async with platform():
        await until(partial(transforms.because, "web", "SourceUnavailable", "Fetched"))
        await until(lambda: transforms.value("web-0") == "a")
        assert not transforms.is_done("web"), "it is not what was asked for"


async def fail_without_source(transforms: Transforms, git: GitServer, deadline: str) -> None:
    """Have a revision that works, then one that does not, and then its source away."""
    git.repository().commit({"modules/stuck/module.cue": STUCK})
    transforms.make("secrets", secret_of(git))
    rollout = {"autoRollback": True, "deadline": deadline}
    transforms.ask("web", {"value": "a"}, cueRef=in_git(git, "stuck"), rollout=rollout)
    await until(partial(transforms.is_done, "web"))
    transforms.alter("web", input={"value": "bad"})
    await until(lambda: transforms.value("web-0") == "bad")
    await git.stop()


async def test_a_revision_is_given_up_although_its_source_is_away(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    async with platform():
        await fail_without_source(transforms, git, "6s")
        transforms.annotate("web", **{NOW: "1"})
        await until(partial(transforms.because, "web", "SourceUnavailable", "Fetched"))
        await until(lambda: transforms.value("web-0") == "a")
        await until(lambda: transforms.says("web", "Executed").get("status") == "True")
    assert transforms.because("web", "SourceUnavailable", "Fetched")
    assert not transforms.is_done("web"), "it is not what was asked for"
    assert "revision 1" in transforms.says("web", "Rendered")["message"]
    assert transforms.told("web")["revisions"][0]["failed"] is True
    assert any(event["reason"] == "RolledBack" for event in transforms.events("web"))


async def test_a_deadline_does_not_wait_for_the_next_try_of_a_source_that_is_away(
    transforms: Transforms, platform: StartPlatform, git: GitServer
) -> None:
    async with platform():
        await fail_without_source(transforms, git, "15s")
    async with platform(backoff=Backoff(first=600.0, limit=600.0)):
        await until(partial(transforms.because, "web", "SourceUnavailable", "Fetched"))
        await until(lambda: transforms.value("web-0") == "a")
