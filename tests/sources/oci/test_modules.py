"""CUE modules that import others: fetched beforehand, evaluated without a network."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import evaluators
from doubles.registry import RegistryServer
from pequod.evaluator.errors import EvaluationError, ModuleError
from pequod.evaluator.evaluator import Tree
from pequod.evaluator.registry import Registry, RegistryAccess
from pequod.sources.credentials import Credentials, Login
from pequod.sources.errors import (
    BadReferenceError,
    DeniedError,
    MissingError,
    RefusedError,
    TooLargeError,
)
from pequod.sources.limits import Limits
from pequod.sources.oci.source import OciOptions, OciSource

MakeSource = Callable[..., Awaitable[OciSource]]
LANGUAGE = 'language: version: "v0.12.0"\n'
LIBRARY = {
    "cue.mod/module.cue": f'module: "example.test/library@v0"\n{LANGUAGE}',
    "library.cue": 'package library\n\n#Greeting: "hello"\n',
}
APP = {
    "cue.mod/module.cue": (
        f'module: "example.test/app@v0"\n{LANGUAGE}deps: "example.test/library@v0": v: "v0.1.0"\n'
    ),
    "app.cue": """\
package app

import "example.test/library@v0:library"

#Input: {name: string}
input: #Input
context: {...}
graph: nodes: [{id: input.name, text: library.#Greeting}]
""",
}


@pytest.fixture
async def published(
    source: OciSource, server: RegistryServer, trust: Credentials, tmp_path: Path
) -> str:
    folder = evaluators.write(tmp_path / "library", LIBRARY)
    place = f"{server.host}/example.test/library:v0.1.0"
    await source.push(folder, place, credentials=trust)
    return server.host


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return evaluators.write(tmp_path / "app", APP)


async def rendered(tree: Tree) -> list[dict[str, str]]:
    async with evaluators.evaluating() as evaluator:
        found = await evaluator.render(tree, {"name": "x"}, {})
        assert found.violations == ()
        assert found.graph is not None
        nodes: list[dict[str, str]] = found.graph["nodes"]
        return nodes


async def test_an_import_is_fetched_and_then_evaluated_offline(
    source: OciSource, published: str, trust: Credentials, app: Path, tmp_path: Path
) -> None:
    into = tmp_path / "modules"
    found = await source.modules(Tree(root=app), published, into=into, credentials=trust)
    assert found == ["example.test/library@v0.1.0"]
    nodes = await rendered(Tree(root=app, modules=into))
    assert nodes == [{"id": "x", "text": "hello"}]


async def test_an_import_that_was_not_fetched_is_an_error(app: Path) -> None:
    with pytest.raises(ModuleError) as caught:
        await rendered(Tree(root=app))
    (problem,) = caught.value.problems
    assert 'imports "example.test/library' in problem.message
    assert "which is not there" in problem.message


async def test_what_is_in_the_cache_is_not_fetched_again(
    server: RegistryServer,
    source: OciSource,
    published: str,
    trust: Credentials,
    app: Path,
    tmp_path: Path,
) -> None:
    for _ in range(2):
        server.journal.clear()
        await source.modules(Tree(root=app), published, into=tmp_path / "m", credentials=trust)
    assert server.journal == []


async def test_a_tree_without_imports_needs_nothing(
    server: RegistryServer, source: OciSource, tmp_path: Path
) -> None:
    app = evaluators.write(tmp_path / "plain", {"a.cue": "package a\n"})
    assert await source.modules(Tree(root=app), server.host, into=tmp_path / "m") == []
    assert server.journal == []


async def test_a_module_that_nobody_has_is_missed_by_its_name(
    server: RegistryServer, source: OciSource, trust: Credentials, tmp_path: Path
) -> None:
    other = APP["cue.mod/module.cue"].replace("library", "nobody")
    app = evaluators.write(tmp_path / "app", {"cue.mod/module.cue": other})
    with pytest.raises(MissingError, match=r"example\.test/nobody@v0\.1\.0 cannot be fetched"):
        await source.modules(Tree(root=app), server.host, into=tmp_path / "m", credentials=trust)


async def test_a_private_registry_wants_credentials(
    server: RegistryServer,
    source: OciSource,
    published: str,
    trust: Credentials,
    app: Path,
    tmp_path: Path,
) -> None:
    server.password = ("ada", "s3cr3t")
    with pytest.raises(DeniedError, match="give a Secret"):
        await source.modules(Tree(root=app), published, into=tmp_path / "m", credentials=trust)
    login = Login(username="ada", password="s3cr3t")
    right = Credentials(authority=trust.authority, hosts={server.host: login})
    await source.modules(Tree(root=app), published, into=tmp_path / "m", credentials=right)


async def test_case_81_modules_are_not_fetched_from_this_machine_by_others(
    make_source: MakeSource, published: str, trust: Credentials, app: Path, tmp_path: Path
) -> None:
    source = await make_source(options=OciOptions())
    with pytest.raises(RefusedError, match="not an address"):
        await source.modules(Tree(root=app), published, into=tmp_path / "m", credentials=trust)


async def test_case_76_modules_that_are_too_large_are_left(
    make_source: MakeSource, published: str, trust: Credentials, app: Path, tmp_path: Path
) -> None:
    source = await make_source(limits=Limits(transfer_bytes=100))
    with pytest.raises(TooLargeError, match="more than 100 bytes"):
        await source.modules(Tree(root=app), published, into=tmp_path / "m", credentials=trust)


@pytest.mark.parametrize(
    "registry", ["file:/etc/passwd", "inline:x", "", "a.test+insecure", "https://a.test", "a.test,"]
)
async def test_case_72_only_registries_are_registries(
    registry: str, source: OciSource, app: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadReferenceError):
        await source.modules(Tree(root=app), registry, into=tmp_path / "m")


@pytest.mark.parametrize("registry", ["file:/etc/passwd", "inline:x", "a.test+insecure", "a.test,"])
async def test_case_72_the_worker_does_not_read_files_as_registries_either(
    registry: str, app: Path, tmp_path: Path
) -> None:
    async with evaluators.pool(network=True) as pool:
        with pytest.raises(EvaluationError) as caught:
            await Registry(pool).modules(
                Tree(root=app), registry, RegistryAccess(), into=tmp_path / "m", largest=1000
            )
    assert "root:" not in str(caught.value)
