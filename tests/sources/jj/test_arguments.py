"""Whatever somebody writes for a revision, it is a name that is not there, or not a name."""

from pathlib import Path
from urllib.parse import quote

import pytest

from doubles.gitserver import GitServer
from doubles.jjrepo import Workspace
from pequod.sources.credentials import Credentials
from pequod.sources.errors import BadReferenceError, MissingError
from pequod.sources.git.source import GitSource
from pequod.sources.jj.repository import JjRepository
from pequod.sources.jj.source import JjSource

NOT_A_NAME = [
    "",
    " ",
    "-",
    "--config=ui.editor=touch canary",
    "--config-file=/etc/passwd",
    "--at-op=@-",
    "--at-operation=00000",
    "-R/",
    "-R/etc",
    "-r",
    "--help",
    "--template=self",
    "x | root()",
    "~main",
    "main-::",
    "main::",
    "::main",
    "main..",
    "main^",
    "@",
    "main@",
    "@origin",
    "@-",
    "main\n--config=x",
    "main\0",
    "main\x1b[2J",
    "main\u2028x",
    "ma\\in",
    "*",
    "glob:*",
    "regex:.",
    '")|all()|bookmarks(exact:"',
    "mai?",
    "[m]ain",
    "main@{0}",
    ".hidden",
    "a/../b",
    "a//b",
    "/main",
    "main/",
    "main.lock",
    "main.",
    "refs/heads/",
    "refs/notes/x",
    "refs/remotes/origin",
    "\ud800",
    "x" * 256,
]
A_STRANGE_NAME = [
    "all()",
    "root()",
    "main|root()",
    "(main)",
    "main-",
    "main+",
    "none()",
    "present(main)",
    'main"',
    '"main"',
    "'main'",
    '")|all()|tags("',
    '","',
    "main&main",
    "$(touch${IFS}canary)",
    "`touch`",
    "main;touch",
    "%00",
    "HEAD",
    "trunk()",
    "exact",
    "main@origin@origin",
    "\u00e9\u4e2d\U0001f40b",
]


@pytest.fixture
def canaries(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository with a bookmark that must not be found, and a folder that must stay empty."""
    workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", "@-")
    folder = tmp_path / "canaries"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


ONLY_A_REF_OF_GIT = {"", "refs/notes/x", "refs/remotes/origin"}
"""The first is the repository's own choice; the others a server may have."""


class NothingIsRun:
    async def run(self, *_: object) -> bytes:
        raise AssertionError


def reference(server: GitServer, revision: str) -> str:
    return f"{server.url()}?ref={quote(revision, safe='', errors='surrogatepass')}"


async def test_case_71_what_is_not_a_name_is_refused_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = JjRepository(NothingIsRun(), tmp_path)  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    for revision in NOT_A_NAME:
        with pytest.raises(BadReferenceError) as failure:
            await repository.resolve(revision)
        assert str(failure.value).isprintable(), revision


async def test_case_71_strange_names_are_only_names(
    canaries: Path, repository: JjRepository
) -> None:
    for revision in A_STRANGE_NAME:
        with pytest.raises(MissingError):
            await repository.resolve(revision)
    assert list(canaries.iterdir()) == []


async def test_case_71_strange_names_are_found_where_they_are_names(
    workspace: Workspace, repository: JjRepository
) -> None:
    first = workspace.commit("first", {"a": "1"})
    workspace.commit("second", {"a": "2"})
    names = ["all()", "main|root()", '")|all()|tags("', "main-", "caf\u00e9"]
    for name in names:
        workspace.git("branch", name, workspace.commit_id(first))
    workspace.jj("git", "import")
    for name in names:
        assert (await repository.resolve(name)).change_id == first


async def test_case_71_what_is_not_a_name_becomes_no_artifact_and_no_request(
    server: GitServer, git_source: GitSource, trust: Credentials, tmp_path: Path
) -> None:
    source = JjSource(git_source, NothingIsRun())  # type: ignore[arg-type]
    for revision in NOT_A_NAME:
        with pytest.raises(BadReferenceError):
            await source.resolve_local(tmp_path, revision)
        if revision not in ONLY_A_REF_OF_GIT:
            with pytest.raises(BadReferenceError) as failure:
                await source.resolve(reference(server, revision), credentials=trust)
            assert str(failure.value).isprintable(), revision
    for path in ("/etc", "../x", "a/../b", "-x", "a\0b", ".git", "a\\b"):
        with pytest.raises(BadReferenceError):
            await source.resolve_local(tmp_path, "main", path=path)
    assert server.journal == []


async def test_case_71_strange_names_are_only_names_to_a_server(
    canaries: Path, server: GitServer, source: JjSource, trust: Credentials
) -> None:
    server.repository().commit({"a": "1"})
    for revision in {*A_STRANGE_NAME, "refs/notes/x", "refs/remotes/origin"} - {"HEAD"}:
        with pytest.raises(MissingError):
            await source.resolve(reference(server, revision), credentials=trust)
    assert server.fetches == []
    assert list(canaries.iterdir()) == []
