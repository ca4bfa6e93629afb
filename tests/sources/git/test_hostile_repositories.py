"""Repositories that want more than to be read."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from doubles.gitrepo import Link, Repository, Submodule
from doubles.gitserver import GitServer
from pequod.sources.credentials import Credentials
from pequod.sources.errors import RefusedError, TooLargeError
from pequod.sources.git.address import GitReference
from pequod.sources.git.source import GitSource
from pequod.sources.limits import Limits

Refer = Callable[..., GitReference]
Make = Callable[..., Awaitable[GitSource]]


async def test_case_73_nothing_that_a_repository_holds_is_run(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    run = f"#!/bin/sh\ntouch {canary}\n"
    files = {
        ".gitattributes": "* filter=evil diff=evil text eol=crlf export-ignore ident\n",
        ".gitconfig": f'[filter "evil"]\n smudge = touch {canary}\n',
        ".lfsconfig": "[lfs]\nurl = ext::touch\n",
        ".gitmodules": '[submodule "x"]\n path = x\n url = ../x\n',
        "hooks/post-checkout": run,
        "a.txt": "one\ntwo\n$Id$\n",
        "big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        # A bare repository within the tree, whose configuration git would believe in there.
        "bare/HEAD": "ref: refs/heads/main\n",
        "bare/config": f'[core]\n fsmonitor = "touch {canary}"\n bare = true\n',
        "bare/objects/x": "",
        "bare/refs/x": "",
        "bare/hooks/post-checkout": run,
    }
    server.repository().commit(files)
    artifact = await source.resolve(reference("ref=main"), credentials=trust)
    for path, content in files.items():
        assert (artifact.tree / path).read_text() == content
    await source.resolve(reference("ref=main&path=bare"), credentials=trust)
    assert not canary.exists()


async def test_case_73_submodules_are_left_out_and_named(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1", "vendor/lib": Submodule("1" * 40)})
    artifact = await source.resolve(reference("ref=main"), credentials=trust)
    assert artifact.metadata["submodules"] == "vendor/lib"
    assert [one.name for one in artifact.tree.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "name", [".git", ".GIT", "git~1", "GIT~2", ".g\u200cit", ".git.", ".git ", ".git::$INDEX", ".."]
)
async def test_case_74_names_that_stand_for_git_itself_are_refused(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, name: str
) -> None:
    repository = server.repository()
    inner = repository.tree(("100644", repository.blob(b"[core]"), "config"))
    repository.commit_tree(repository.tree(("40000", inner, name)))
    with pytest.raises(RefusedError):
        await source.resolve(reference("ref=main"), credentials=trust)


async def test_case_74_links_that_stay_inside_are_kept(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    links = {"a/c": Link("b"), "d": Link("a"), "e/f": Link("../a/b")}
    server.repository().commit({**links, "a/b": "1", "Same": "x", "same": "y"})
    artifact = await source.resolve(reference("ref=main"), credentials=trust)
    for path in ("a/b", "a/c", "d/b", "e/f"):
        assert (artifact.tree / path).read_text() == "1"
    assert (artifact.tree / "d").is_symlink()
    assert (artifact.tree / "same").read_text() == "y"


@pytest.mark.parametrize(
    "files",
    [
        {"x": Link("/etc/passwd")},
        {"x": Link("/var/run/secrets/kubernetes.io/serviceaccount/token")},
        {"x": Link("..")},
        {"a/x": Link("../../y")},
        {"a/b/c": "1", "d": Link("a/b"), "x": Link("d/../../..")},
        {"x": Link("y"), "y": Link("x")},
        {"x": Link("x/x")},
        {"x": Link("nowhere")},
        {"x": Link("z" * 5000)},
    ],
    ids=["absolute", "token", "above", "climbing", "through", "loop", "self", "nowhere", "long"],
)
async def test_case_74_links_that_lead_out_are_refused(
    server: GitServer,
    source: GitSource,
    trust: Credentials,
    reference: Refer,
    files: dict[str, Link | str],
) -> None:
    server.repository().commit(files)
    with pytest.raises(RefusedError, match="is a link"):
        await source.resolve(reference("ref=main"), credentials=trust)


async def test_case_74_a_link_out_of_the_wanted_folder_is_refused(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"secret": "1", "deploy/x": Link("../secret")})
    with pytest.raises(RefusedError, match="is a link"):
        await source.resolve(reference("ref=main&path=deploy"), credentials=trust)


async def test_case_74_no_file_is_written_through_a_link(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    """A tree with the same name twice: first a link, then a folder with a file."""
    repository = server.repository()
    outside = tmp_path / "outside"
    outside.mkdir()
    link = repository.blob(str(outside).encode())
    folder = repository.tree(("100644", repository.blob(b"owned"), "file"))
    crafted = _raw_tree((b"120000", b"x", link), (b"40000", b"x", folder))
    tree = repository.git(
        "hash-object", "--literally", "-t", "tree", "-w", "--stdin", stdin=crafted
    )
    repository.commit_tree(tree)
    with pytest.raises(RefusedError):
        await source.resolve(reference("ref=main"), credentials=trust)
    assert not list(outside.iterdir())


def _raw_tree(*entries: tuple[bytes, bytes, str]) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + bytes.fromhex(one) for mode, name, one in entries)


def _many_files(repository: Repository) -> None:
    repository.commit({f"f{number}": "x" for number in range(20)})


def _large_file(repository: Repository) -> None:
    repository.commit({"a": "1", "large": "x" * 3000})


def _large_tree(repository: Repository) -> None:
    repository.commit({f"f{number}": "x" * 900 for number in range(9)})


def _deep_tree(repository: Repository) -> None:
    repository.commit({"/".join("d" * 30): "x"})


def _long_path(repository: Repository) -> None:
    repository.commit({"n" * 200: "x"})


def _tree_of_trees(repository: Repository) -> None:
    """Ten objects that are ten billion files."""
    below = repository.tree(*(("100644", repository.blob(b"x"), f"f{n}") for n in range(10)))
    for _ in range(9):
        below = repository.tree(*(("40000", below, f"d{n}") for n in range(10)))
    repository.commit_tree(below)


SMALL = Limits(
    files=15, file_bytes=2000, tree_bytes=5000, depth=20, path_bytes=100, seconds=20, refs=20
)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_many_files, "more than 15 files"),
        (_tree_of_trees, "more than 15 files"),
        (_large_file, "large is larger than 2000 bytes"),
        (_large_tree, "all files together are over 5000 bytes"),
        (_deep_tree, r"more than 15 files|is deeper than 20 folders"),
        (_long_path, "is longer than 100 bytes"),
    ],
)
async def test_case_76_trees_over_a_limit_are_refused(
    server: GitServer,
    make_source: Make,
    trust: Credentials,
    reference: Refer,
    make: Callable[[Repository], None],
    said: str,
) -> None:
    source = await make_source(limits=SMALL)
    make(server.repository())
    with pytest.raises(TooLargeError, match=said):
        await source.resolve(reference(), credentials=trust)


async def test_case_76_a_file_that_is_too_large_is_not_even_fetched(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer
) -> None:
    source = await make_source(limits=Limits(file_bytes=2000, seconds=20))
    repository = server.repository()
    large = repository.blob(b"x" * 3000)
    repository.commit_tree(repository.tree(("100644", large, "large")))
    with pytest.raises(TooLargeError):
        await source.resolve(reference(), credentials=trust)
    assert b"filter blob:limit=2001" in server.fetches[0].body
    assert len(server.fetches) == 1


async def test_case_76_very_many_refs_are_refused_while_they_are_listed(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer
) -> None:
    source = await make_source(limits=SMALL)
    repository = server.repository()
    commit = repository.commit({"a": "1"})
    lines = "".join(f"create refs/heads/b{number} {commit}\n" for number in range(100))
    repository.git("update-ref", "--stdin", stdin=lines.encode())
    with pytest.raises(TooLargeError, match="more than"):
        await source.commit_of(reference("ref=main"), credentials=trust)


async def test_case_76_what_is_too_much_is_cut_off_while_it_arrives(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer, tmp_path: Path
) -> None:
    source = await make_source(limits=Limits(transfer_bytes=100_000, seconds=20))
    noise = Random(1).randbytes(400_000)
    repository = server.repository()
    repository.commit({"noise": noise})
    for query in ("ref=main", "ref=main&path=sub"):
        repository.commit({"sub/noise": noise[::-1]})
        with pytest.raises(TooLargeError):
            await source.resolve(reference(query), credentials=trust)
    repository.commit({"ok/a": "1"})
    artifact = await source.resolve(reference("ref=main&path=ok"), credentials=trust)
    assert (artifact.tree / "a").read_text() == "1"
    assert not list((tmp_path / "git").rglob("tmp_*"))


@pytest.mark.parametrize("query", ["ref=main", "ref=main&path=sub"])
async def test_case_76_a_small_pack_of_a_huge_file_is_not_unpacked(
    server: GitServer, make_source: Make, trust: Credentials, reference: Refer, query: str
) -> None:
    limits = Limits(file_bytes=1_000_000, transfer_bytes=200_000, seconds=20)
    source = await make_source(limits=limits)
    server.repository().commit({"sub/zeros": bytes(20_000_000)})
    with pytest.raises(TooLargeError, match="zeros is larger than 1000000 bytes"):
        await source.resolve(reference(query), credentials=trust)


@pytest.mark.parametrize("query", ["ref=main", "ref=main&path=sub"])
async def test_a_server_that_cannot_filter_is_read_as_well(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer, query: str
) -> None:
    repository = server.repository()
    repository.git("config", "uploadpack.allowFilter", "false")
    repository.commit({"sub/a": "1"})
    artifact = await source.resolve(reference(query), credentials=trust)
    assert [one.name for one in artifact.tree.rglob("a")] == ["a"]
    repository.commit({"sub/a": "2"})
    artifact = await source.resolve(reference(query), credentials=trust)
    assert next(artifact.tree.rglob("a")).read_text() == "2"
