"""Jujutsu repositories as artifacts: pushed to a real server, and on this machine."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from doubles.gitrepo import Repository
from doubles.gitserver import GitServer
from doubles.jjrepo import Person, Workspace, everything_in
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import Credentials
from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    UnavailableError,
)
from pequod.sources.git.source import GitSource
from pequod.sources.jj.source import JjSource

FILES = {"top.cue": "top", "deploy/base/a.cue": "a", "deploy/base/b/c.cue": "c"}
AUTHOR = ("-c", "user.name=Git", "-c", "user.email=git@example.com")


@dataclass(frozen=True)
class Pushed:
    """A repository with everything in it that can be named; tests leave it as it is."""

    workspace: Workspace
    served: Path
    below: str
    tip: str
    conflict: str
    divergent: str
    versions: tuple[str, ...]
    commits: dict[str, str]


@pytest.fixture(scope="module")
def pushed(jj_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Pushed:
    folder = tmp_path_factory.mktemp("pushed")
    workspace = Person.at(folder / "home", jj_program).workspace(folder / "work")
    remote = Repository(folder / "served" / "app.git").folder
    below = workspace.commit("Say hello", FILES)
    tip = workspace.commit("Say more", {"more.cue": "more"})
    for name in ("main", "feature/one"):
        workspace.jj("bookmark", "create", name, "-r", tip)
    workspace.jj("bookmark", "create", below[:7], "-r", tip)
    workspace.push(remote, "main", "feature/one", below[:7])
    divergent = workspace.commit("twice", {"more.cue": "twice"})
    versions = workspace.diverge(divergent)
    workspace.jj("new", "root()")
    conflict = workspace.conflict("deploy/a.cue", "b.cue")
    commits = {change: workspace.commit_id(change) for change in (below, tip, conflict)}
    workspace.git("tag", "v1", commits[below])
    workspace.git(*AUTHOR, "tag", "--annotate", "v2", "-m", "release", commits[tip])
    refs = {
        "heads/one": versions[0],
        "heads/two": versions[1],
        "heads/conflicted": commits[conflict],
        "tags/v1": "v1",
        "tags/v2": "v2",
    }
    workspace.jj("git", "import")
    workspace.git("push", str(remote), *(f"{at}:refs/{name}" for name, at in refs.items()))
    return Pushed(
        workspace, remote.parent, below, tip, conflict, divergent, tuple(versions), commits
    )


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The shared repository, for those who ask for it."""
    if "pushed" not in request.fixturenames:
        return tmp_path / "served"
    shared: Pushed = request.getfixturevalue("pushed")
    return shared.served


class Asking:
    """Somebody who asks for revisions of the served repository."""

    def __init__(self, source: JjSource, server: GitServer, trust: Credentials) -> None:
        self.source = source
        self.server = server
        self.trust = trust

    async def __call__(
        self, revision: str, *, path: str = "", known: Artifact | None = None
    ) -> Artifact:
        where = f"&path={path}" if path else ""
        ref = f"{self.server.url()}?ref={quote(revision, safe='')}{where}"
        return await self.source.resolve(ref, credentials=self.trust, known=known)

    async def problem(self, revision: str, kind: type[SourceError], *, path: str = "") -> str:
        with pytest.raises(kind) as failure:
            await self(revision, path=path)
        assert type(failure.value) is kind
        return failure.value.problem


@pytest.fixture
def ask(source: JjSource, server: GitServer, trust: Credentials) -> Asking:
    return Asking(source, server, trust)


def files(artifact: Artifact) -> dict[str, str]:
    found = (one for one in artifact.tree.rglob("*") if one.is_file())
    return {str(one.relative_to(artifact.tree)): one.read_text() for one in found}


async def test_every_kind_of_revision_leads_to_the_same_artifact(
    pushed: Pushed, ask: Asking
) -> None:
    commit = pushed.commits[pushed.tip]
    for revision in (
        "main",
        "feature/one",
        "main@origin",
        "feature/one@upstream",
        "refs/heads/main",
        "v2",
        "refs/tags/v2",
        commit,
        commit[:10],
        pushed.tip,
        pushed.tip[:8],
    ):
        found = await ask(revision)
        assert found.revision == f"{revision}@sha1:{commit}"
        assert found.metadata["change-id"] == pushed.tip
        assert found.metadata["commit"] == commit
        assert files(found) == {**FILES, "more.cue": "more"}
        if revision != commit:
            names = sorted(("main", "feature/one", pushed.below[:7]))
            assert found.metadata["bookmarks"] == ", ".join(names)


async def test_what_a_change_is_below_a_bookmark_says_about_itself(
    pushed: Pushed, ask: Asking
) -> None:
    commit = pushed.commits[pushed.below]
    found = await ask(pushed.below, path="deploy/base")
    assert files(found) == {"a.cue": "a", "b/c.cue": "c"}
    assert {key: found.metadata[key] for key in found.metadata if key != "authored"} == {
        "author": "Ishmael",
        "change-id": pushed.below,
        "commit": commit,
        "path": "deploy/base",
        "ref-kind": "change",
        "subject": "Say hello",
    }
    assert (await ask("v1")).metadata["ref"] == "refs/tags/v1"


async def test_the_prefixes_of_addresses_are_accepted(
    pushed: Pushed, source: JjSource, server: GitServer, trust: Credentials
) -> None:
    commit = pushed.commits[pushed.tip]
    for prefix in ("jj+", "git+", "jj+git+"):
        found = await source.resolve(f"{prefix}{server.url()}?ref=main", credentials=trust)
        assert found.metadata["commit"] == commit
    found = await source.resolve(server.url() + "?ref=HEAD", credentials=trust)
    assert found.revision == f"HEAD@sha1:{commit}"
    with pytest.raises(DeniedError, match="SSH needs a key"):
        await source.resolve("jj+ssh://git@127.0.0.1/app.git?ref=main", credentials=trust)


async def test_a_bookmark_wins_over_the_change_id_that_it_looks_like(
    pushed: Pushed, ask: Asking
) -> None:
    assert (await ask(pushed.below[:7])).metadata["change-id"] == pushed.tip
    assert (await ask(pushed.below[:8])).metadata["change-id"] == pushed.below


async def test_a_divergent_change_is_refused_with_its_commits(pushed: Pushed, ask: Asking) -> None:
    problem = await ask.problem(pushed.divergent, RefusedError)
    assert "divergent" in problem
    assert all(commit[:12] in problem for commit in pushed.versions)
    assert (await ask("two")).metadata["commit"] == pushed.versions[1]


async def test_conflicts_are_refused_with_their_paths_however_they_are_named(
    pushed: Pushed, ask: Asking
) -> None:
    commit = pushed.commits[pushed.conflict]
    for revision in ("conflicted", "conflicted@origin", pushed.conflict, commit):
        for path in ("", "deploy"):
            problem = await ask.problem(revision, RefusedError, path=path)
            assert problem.endswith("was pushed with conflicts in b.cue, deploy/a.cue")


@pytest.mark.usefixtures("pushed")
async def test_what_is_not_there_is_missing(ask: Asking) -> None:
    assert "no commit with this change id" in await ask.problem("k" * 32, MissingError)
    for revision in ("nothing", "v1@origin", "nothing@origin", "1" * 40, "abcdef0"):
        await ask.problem(revision, MissingError)
    assert "no such folder" in await ask.problem("main", MissingError, path="deploy/bse")


async def test_what_is_known_and_still_meant_costs_no_fetch(pushed: Pushed, ask: Asking) -> None:
    for revision in ("main", "main@origin", pushed.below, pushed.tip[:9], "v1"):
        for path in ("", "deploy"):
            known = await ask(revision, path=path)
            ask.server.journal.clear()
            assert await ask(revision, path=path, known=known) is known
            assert ask.server.fetches == []
            assert all(b"command=ls-refs" in one.body for one in ask.server.journal if one.body)


async def test_a_change_that_is_missing_costs_no_fetch_while_the_refs_are_the_same(
    pushed: Pushed, ask: Asking
) -> None:
    await ask.problem("k" * 32, MissingError)
    await ask.problem(pushed.divergent, RefusedError)
    ask.server.journal.clear()
    await ask.problem("k" * 32, MissingError)
    await ask.problem(pushed.divergent, RefusedError)
    assert ask.server.fetches == []
    polls = [one for one in ask.server.journal if b"command=ls-refs" in one.body]
    assert len(polls) == 2


async def test_a_rewritten_change_is_a_new_artifact_and_an_abandoned_one_is_missing(
    workspace: Workspace, ask: Asking
) -> None:
    remote = ask.server.repository().folder
    base = workspace.commit("base", {"a": "0"})
    change = workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", base)
    workspace.jj("bookmark", "create", "topic", "-r", change)
    workspace.push(remote, "main", "topic")
    known, first = await ask(base), await ask(change)
    assert files(first) == {"a": "1"}
    workspace.jj("edit", change)
    workspace.write({"a": "2"})
    workspace.push(remote, "topic")
    second = await ask(change, known=first)
    assert second.metadata["commit"] == workspace.commit_id(change)
    assert second.metadata["change-id"] == first.metadata["change-id"] == change
    assert second.digest != first.digest
    assert files(second) == {"a": "2"}
    assert files(await ask(first.metadata["commit"])) == {"a": "1"}
    ref, commits = ask.server.url(), (first.metadata["commit"], second.metadata["commit"])
    assert await ask.source.changed(ref, *commits, credentials=ask.trust) == ["a"]
    workspace.jj("new", base)
    workspace.jj("abandon", change)
    workspace.jj("git", "push", "--deleted")
    assert "no commit with this change id" in await ask.problem(change, MissingError)
    assert await ask(base, known=known) is known


async def test_a_commit_that_git_has_made_has_no_change_id(ask: Asking) -> None:
    commit = ask.server.repository().commit({"a": "1"})
    found = await ask("main")
    assert found.revision == f"main@sha1:{commit}"
    assert "change-id" not in found.metadata


async def test_a_local_repository_gives_what_was_pushed_and_stays_as_it_is(
    pushed: Pushed, ask: Asking
) -> None:
    root = pushed.workspace.root
    before = everything_in(root)
    for revision, path in (("main", ""), (pushed.below, "deploy/base"), ("v1", "deploy")):
        remote = await ask(revision, path=path)
        local = await ask.source.resolve_local(root, revision, path=path)
        assert (local.digest, local.revision) == (remote.digest, remote.revision)
        assert local.metadata["change-id"] == remote.metadata["change-id"]
        again = await ask.source.resolve_local(root, revision, path=path, known=local)
        assert again is local
    commits = (pushed.commits[pushed.below], pushed.commits[pushed.tip])
    assert await ask.source.changed_local(root, *commits) == ["more.cue"]
    assert len(await ask.source.operations(root, 3)) == 3
    for change, problem in ((pushed.conflict, "b.cue, deploy/a.cue"), (pushed.divergent, "diverg")):
        with pytest.raises(RefusedError, match=problem):
            await ask.source.resolve_local(root, change)
    with pytest.raises(MissingError, match="no such folder"):
        await ask.source.resolve_local(root, "main", path="deploy/bse")
    assert everything_in(root) == before


@pytest.mark.parametrize("colocated", [True, False])
async def test_only_what_jj_has_taken_in_counts(
    person: Person, tmp_path: Path, ask: Asking, *, colocated: bool
) -> None:
    workspace = person.workspace(tmp_path / "local", colocated=colocated)
    change = workspace.commit("first", FILES)
    workspace.jj("bookmark", "create", "main", "-r", change)
    workspace.push(ask.server.repository().folder, "main")
    remote = await ask("main")
    workspace.write({"top.cue": "edited", "deploy/base/a.cue": "edited", "new": "new"})
    found = await ask.source.resolve_local(workspace.root, "main")
    assert (found.digest, found.revision) == (remote.digest, remote.revision)
    assert found.metadata["bookmarks"] == "main"
    assert files(found) == FILES
    workspace.jj("squash", "--into", change)
    after = await ask.source.resolve_local(workspace.root, change, known=found)
    assert files(after)["top.cue"] == "edited"
    assert after.metadata["change-id"] == found.metadata["change-id"]
    first = (await ask.source.operations(workspace.root, 1))[0]
    assert first.description.startswith("squash commits into")


async def test_conflicts_that_jj_no_longer_knows_of_are_refused_locally_too(
    workspace: Workspace, source: JjSource
) -> None:
    """Git drops the headers of jj, and keeps its folders as if they were files of the project."""
    commit = workspace.commit_id(workspace.conflict("b.cue"))
    tree = workspace.git("rev-parse", f"{commit}^{{tree}}").strip()
    plain = workspace.git(*AUTHOR, "commit-tree", tree, "-m", "by git").strip()
    workspace.git("branch", "plain", plain)
    workspace.jj("git", "import")
    with pytest.raises(RefusedError, match=r"with conflicts in b\.cue"):
        await source.resolve_local(workspace.root, "plain")


async def test_a_replaced_commit_and_a_broken_repository_are_not_believed(
    workspace: Workspace, source: JjSource
) -> None:
    honest = workspace.commit_id(workspace.commit("honest", {"a": "honest"}))
    evil = workspace.commit_id(workspace.commit("evil", {"a": "evil"}))
    workspace.git("replace", honest, evil)
    assert files(await source.resolve_local(workspace.root, honest)) == {"a": "honest"}
    tree = workspace.git("--no-replace-objects", "rev-parse", f"{evil}^{{tree}}").strip()
    (workspace.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(UnavailableError, match="git fsck"):
        await source.resolve_local(workspace.root, evil)


async def test_without_jj_only_remotes_can_be_read(
    pushed: Pushed, git_source: GitSource, server: GitServer, trust: Credentials
) -> None:
    source = JjSource(git_source)
    found = await source.resolve(f"{server.url()}?ref={pushed.below}", credentials=trust)
    assert found.metadata["change-id"] == pushed.below
    with pytest.raises(UnavailableError, match="jj, which is not there"):
        await source.resolve_local(pushed.workspace.root, "main")
