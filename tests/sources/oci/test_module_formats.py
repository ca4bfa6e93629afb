"""The same module in every place that it can be in renders to the same graph."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

import evaluators
from doubles.gitserver import GitServer, Names
from pequod.cli.scaffold import scaffold
from pequod.evaluator.evaluator import Tree
from pequod.kube.addresses import AddressRule
from pequod.sources import configmap
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import Credentials
from pequod.sources.embedded import EmbeddedSource
from pequod.sources.git.source import GitOptions, GitSource
from pequod.sources.inline import InlineSource
from pequod.sources.oci.source import OciSource
from pequod.sources.packing import pack, pack_module
from pequod.sources.store import Store

GRAPH = {
    "metadata": {"name": "hi"},
    "nodes": [
        {
            "id": "settings",
            "object": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "hi", "namespace": "team"},
                "data": {"message": "hello"},
            },
        }
    ],
}
Publish = Callable[..., Awaitable[str]]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    scaffold(tmp_path / "modules" / "greeting")
    return tmp_path / "modules" / "greeting"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "formats")
    await store.open()
    yield store
    store.close()


async def renders(found: Artifact) -> None:
    async with evaluators.evaluating(size=1) as evaluator:
        tree = Tree(root=found.tree, digest=found.digest)
        context = {"name": "hi", "namespace": "team"}
        rendered = await evaluator.render(tree, {"message": "hello"}, context)
    assert rendered.graph == GRAPH


def texts(module: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in module.glob("*.cue")}


async def test_in_a_config_map_as_texts(store: Store, module: Path) -> None:
    await renders(await configmap.add(store, "team/greeting", texts(module), {}))


@pytest.mark.parametrize(("key", "packing"), [("module.tar.gz", pack), ("module.zip", pack_module)])
async def test_in_a_config_map_as_an_archive(
    store: Store, module: Path, tmp_path: Path, key: str, packing: Callable[[Path, Path], None]
) -> None:
    packing(module, tmp_path / "archive")
    content = {key: (tmp_path / "archive").read_bytes()}
    await renders(await configmap.add(store, "team/greeting", {}, content))


async def test_inline(store: Store, module: Path) -> None:
    lines = (line for text in texts(module).values() for line in text.splitlines())
    text = "\n".join(line for line in lines if not line.startswith("package "))
    await renders(await InlineSource(store).resolve(text))


async def test_embedded(store: Store, module: Path) -> None:
    await renders(await EmbeddedSource(store, module.parent, version="1").resolve("greeting"))


async def test_in_git(store: Store, module: Path, tmp_path: Path) -> None:
    server = GitServer(tmp_path / "served")
    await server.start()
    source = GitSource(
        store,
        tmp_path / "git",
        GitOptions(rule=AddressRule(allow_local=True), resolver=Names()),
    )
    try:
        await source.open()
        files = {
            f"greeting/{path.relative_to(module)}": path.read_text()
            for path in module.rglob("*")
            if path.is_file()
        }
        server.repository().commit(files)
        trust = Credentials(authority=server.authority.certificate.decode())
        await renders(
            await source.resolve(f"{server.url()}?ref=main&path=greeting", credentials=trust)
        )
    finally:
        source.close()
        await server.stop()


@pytest.mark.parametrize("kind", ["cue", "tar"])
async def test_in_a_registry_as_we_push_it(
    source: OciSource, repository: str, trust: Credentials, module: Path, kind: str
) -> None:
    reference = f"oci://{repository}:v1"
    await source.push(module, reference, credentials=trust, kind="cue" if kind == "cue" else "tar")
    await renders(await source.resolve(reference, credentials=trust))


@pytest.mark.parametrize(
    "media_type",
    [
        "application/vnd.cncf.flux.content.v1.tar+gzip",
        "application/vnd.timoni.content.v1.tar+gzip",
        "application/vnd.oci.image.layer.v1.tar+gzip",
    ],
)
async def test_in_a_registry_as_others_push_it(
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
    module: Path,
    media_type: str,
) -> None:
    layer = module.parent / "layer"
    pack(module, layer)
    await publish([(media_type, layer.read_bytes())])
    await renders(await source.resolve(f"oci://{repository}:v1", credentials=trust))
