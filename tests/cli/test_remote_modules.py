"""Modules that are in git or in a registry, on the command line."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

import evaluators
from commandline import Pequod
from doubles.gitserver import GitServer
from pequod.cli.scaffold import scaffold


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    """A server with a repository in which a module has a folder, and a tag."""
    server = GitServer(tmp_path / "served")
    await server.start()
    made = scaffold(tmp_path / "modules")
    files = {str(path.relative_to(tmp_path)): path.read_text() for path in made}
    server.repository().tag("v1", server.repository().commit(files))
    yield server
    await server.stop()


def secret(path: Path, **data: str) -> str:
    encoded = {
        key.replace("_", "."): b64encode(value.encode()).decode() for key, value in data.items()
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Secret", "data": encoded}))
    return str(path)


@pytest.fixture
def authority(server: GitServer, tmp_path: Path) -> str:
    return secret(tmp_path / "secret.yaml", ca_crt=server.authority.certificate.decode())


async def test_a_module_in_git_is_fetched_and_rendered(
    pequod: Pequod, server: GitServer, authority: str
) -> None:
    url = f"git+https://127.0.0.1:{server.port}/app.git?ref=v1&path=modules"
    command = ("render", url, "-i", "-", "--credentials", authority)
    done = await asyncio.to_thread(pequod, *command, stdin="message: hello")
    assert yaml.safe_load(done.stdout)["data"] == {"message": "hello"}
    fetched = len(server.fetches)
    await asyncio.to_thread(pequod, *command, stdin="message: again")
    assert len(server.fetches) == fetched, "what did not change is not fetched again"


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("ref=nowhere&path=modules", 4, "nowhere"),
        ("ref=main&path=elsewhere", 4, "elsewhere"),
        ("ref=--upload-pack=x", 2, "ref"),
        ("branch=main", 2, "Use only ref and path"),
    ],
)
async def test_a_module_that_git_does_not_have_ends_with_4_and_one_nobody_has_with_2(
    pequod: Pequod, server: GitServer, authority: str, query: str, code: int, said: str
) -> None:
    url = f"git+https://127.0.0.1:{server.port}/app.git?{query}"
    command = ("render", url, "-i", "-", "--credentials", authority)
    done = await asyncio.to_thread(pequod, *command, stdin="message: x", code=code)
    assert said in done.stderr
    assert done.stdout == ""


async def test_a_server_that_cannot_be_verified_ends_with_4(
    pequod: Pequod, server: GitServer
) -> None:
    url = f"git+https://127.0.0.1:{server.port}/app.git"
    done = await asyncio.to_thread(pequod, "module", "schema", url, code=4)
    assert "certificate" in done.stderr


def test_a_credentials_file_that_is_no_secret_ends_with_1(pequod: Pequod, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    command = ("module", "schema", "embedded:webservice", "--credentials")
    done = pequod(*command, str(tmp_path / "other.yaml"), code=1)
    assert "is no manifest of a Secret" in done.stderr


def test_a_module_can_be_pushed_pulled_and_rendered(
    pequod: Pequod, registry_port: int, tmp_path: Path
) -> None:
    folder = tmp_path / "greeting"
    scaffold(folder)
    tag = f"oci://localhost:{registry_port}/platform/{tmp_path.name.lower().replace('_', '-')}:v1"
    pinned = pequod("module", "push", str(folder), tag).stdout.strip()
    assert "@sha256:" in pinned
    for reference in (tag, pinned):
        done = pequod("render", reference, "-i", "-", stdin="message: hello")
        assert yaml.safe_load(done.stdout)["data"] == {"message": "hello"}
    pequod("module", "pull", tag, str(tmp_path / "copy"))
    assert (tmp_path / "copy/input.cue").read_text() == (folder / "input.cue").read_text()


def test_a_tag_that_is_not_there_ends_with_4_and_no_reference_with_2(
    pequod: Pequod, registry_port: int
) -> None:
    missing = f"oci://localhost:{registry_port}/platform/nothing:v1"
    assert "platform/nothing" in pequod("module", "schema", missing, code=4).stderr
    pequod("module", "schema", "oci://nohost/module:v1", code=2)
    pequod("module", "push", "embedded", "oci://localhost:1/a/b:v1", code=4)


def test_what_a_module_imports_is_fetched_only_from_the_registry_that_is_named(
    pequod: Pequod, registry_port: int, tmp_path: Path
) -> None:
    library = evaluators.write(
        tmp_path / "library",
        {
            "cue.mod/module.cue": 'module: "example.test/library@v0"\n'
            'language: version: "v0.17.0"\nsource: kind: "self"\n',
            "a.cue": "package library\n\n#Labels: team: string\n",
        },
    )
    pequod(
        *("module", "push", str(library)),
        f"oci://localhost:{registry_port}/cue/example.test/library:v0.1.0",
    )
    module = evaluators.write(
        tmp_path / "module",
        {
            "cue.mod/module.cue": 'module: "example.test/module@v0"\n'
            'language: version: "v0.17.0"\ndeps: "example.test/library@v0": v: "v0.1.0"\n',
            "a.cue": 'package module\nimport "example.test/library@v0"\n#Input: library.#Labels\n',
        },
    )
    assert "library" in pequod("module", "schema", str(module), code=1).stderr
    named = ("--cue-registry", f"localhost:{registry_port}/cue")
    assert '"team"' in pequod("module", "schema", str(module), *named).stdout
