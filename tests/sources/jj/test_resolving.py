"""What a revision means in a local repository, whatever was done to it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from doubles.jjrepo import Person, Workspace
from pequod.sources.errors import (
    BadReferenceError,
    MissingError,
    RefusedError,
    SourceError,
    UnavailableError,
)
from pequod.sources.jj.command import Jj
from pequod.sources.jj.repository import JjRepository


async def problem_of(repository: JjRepository, revision: str, kind: type[SourceError]) -> str:
    with pytest.raises(kind) as failure:
        await repository.resolve(revision)
    assert type(failure.value) is kind
    assert failure.value.next_step
    return failure.value.problem


@pytest.mark.parametrize("colocated", [True, False])
async def test_every_kind_of_revision_leads_to_the_same_commit(
    person: Person, tmp_path: Path, jj: Jj, *, colocated: bool
) -> None:
    workspace = person.workspace(tmp_path / "repository", colocated=colocated)
    change = workspace.commit("Say hello\n\nAnd more.", {"hello.txt": "hello"})
    workspace.jj("bookmark", "create", "feature/one", "-r", change)
    workspace.push(person.bare_remote(tmp_path / "remote"), "feature/one")
    workspace.jj("tag", "set", "v1", "-r", change)
    commit = workspace.commit_id(change)
    repository = JjRepository(jj, workspace.root)
    for revision in (
        change,
        change[:7],
        commit,
        "feature/one",
        "refs/heads/feature/one",
        "feature/one@origin",
        "refs/remotes/origin/feature/one",
        "v1",
        "refs/tags/v1",
    ):
        found = await repository.resolve(revision)
        assert (found.change_id, found.commit_id) == (change, commit), revision
    assert found.description == "Say hello"
    assert found.bookmarks == ("feature/one",)
    assert (found.conflicted, found.divergent, found.hidden) == (False, False, False)
    assert abs(found.authored_at - datetime.now(UTC)) < timedelta(minutes=10)


async def test_a_change_id_follows_its_change_and_a_commit_id_stays(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("first", {"a": "1"})
    before = await repository.resolve(change)
    workspace.jj("describe", change, "-m", "better")
    after = await repository.resolve(change)
    assert after.change_id == before.change_id
    assert after.commit_id != before.commit_id
    assert after.description == "better"
    old = await repository.resolve(before.commit_id)
    assert (old.commit_id, old.hidden) == (before.commit_id, True)


async def test_an_abandoned_change_is_missing(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("gone", {"a": "1"})
    workspace.jj("abandon", change)
    assert "no such" in await problem_of(repository, change, MissingError)


@pytest.mark.parametrize(
    "revision", ["nothing", "kkkkkkkk", "0" * 39 + "1", "main@origin", "refs/tags/main", "v1"]
)
async def test_what_is_not_there_is_missing(
    workspace: Workspace, repository: JjRepository, revision: str
) -> None:
    workspace.commit("first")
    workspace.jj("bookmark", "create", "main", "-r", "@-")
    await problem_of(repository, revision, MissingError)


async def test_a_bookmark_wins_over_the_change_id_that_it_looks_like(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("first", {"a": "1"})
    other = workspace.commit("second", {"a": "2"})
    workspace.jj("bookmark", "create", change[:7], "-r", other)
    assert (await repository.resolve(change[:7])).change_id == other
    assert (await repository.resolve(change[:8])).change_id == change


async def test_a_tag_wins_over_a_bookmark_unless_the_bookmark_is_spelled_out(
    workspace: Workspace, repository: JjRepository
) -> None:
    tagged = workspace.commit("first", {"a": "1"})
    marked = workspace.commit("second", {"a": "2"})
    workspace.jj("tag", "set", "same", "-r", tagged)
    workspace.jj("bookmark", "create", "same", "-r", marked)
    assert (await repository.resolve("same")).change_id == tagged
    assert (await repository.resolve("refs/heads/same")).change_id == marked


async def test_too_short_a_beginning_is_named_ambiguous(
    workspace: Workspace, repository: JjRepository
) -> None:
    for _ in range(17):
        workspace.jj("new", "--no-edit", "root()")
    letters = workspace.jj("log", "--no-graph", "-r", "~root()", "-T", "change_id.short(1)")
    # An id can begin with sixteen of them, so that one is there twice.
    first = max(letters, key=letters.count)
    problem = await problem_of(repository, first, BadReferenceError)
    assert problem == "more than one change id begins so"


async def test_a_divergent_change_is_refused_with_all_its_commits(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("first", {"a": "1"})
    commits = workspace.diverge(change)
    assert len(commits) == 2
    problem = await problem_of(repository, change, RefusedError)
    assert all(commit[:12] in problem for commit in commits)
    assert "(one)" in problem
    assert "(two)" in problem
    exact = await repository.resolve(commits[0])
    assert exact.divergent


async def test_a_conflicted_bookmark_is_refused_with_all_its_commits(
    workspace: Workspace, repository: JjRepository
) -> None:
    base = workspace.commit("base", {"a": "0"})
    workspace.jj("bookmark", "create", "main", "-r", base)
    commits = []
    for side in ("left", "right"):
        workspace.jj("new", base)
        commits.append(workspace.commit_id(workspace.commit(side, {"a": side})))
    workspace.conflict_bookmark("main", *commits)
    problem = await problem_of(repository, "main", RefusedError)
    assert all(commit[:12] in problem for commit in commits)
    assert (await repository.resolve(commits[1])).bookmarks == ("main",)


async def test_a_bookmark_that_was_moved_and_deleted_at_once_is_refused(
    workspace: Workspace, repository: JjRepository
) -> None:
    workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", "@-")
    workspace.commit("second", {"a": "2"})
    workspace.concurrently(("bookmark", "set", "main", "-r", "@-"), ("bookmark", "delete", "main"))
    assert "different places" in await problem_of(repository, "main", RefusedError)


async def test_a_commit_with_conflicts_is_refused_with_their_paths(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.conflict("deploy/a.cue", 'deploy/"b"\n.cue')
    problem = await problem_of(repository, change, RefusedError)
    assert 'deploy/"b"\\n.cue, deploy/a.cue' in problem
    assert "peaceful" not in problem
    found = await repository.find(change)
    assert found.conflicted


async def test_of_many_conflicts_only_some_are_listed(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.conflict(*(f"file-{number:02}" for number in range(25)))
    problem = await problem_of(repository, change, RefusedError)
    assert "file-09 and 15 more" in problem
    assert "file-10" not in problem


async def test_the_root_is_refused(workspace: Workspace, repository: JjRepository) -> None:
    workspace.commit("first")
    for revision in ("z" * 32, "0" * 40):
        assert "root" in await problem_of(repository, revision, RefusedError)


async def test_operations_that_were_not_merged_are_left_for_their_owner(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("first", {"a": "1"})
    workspace.concurrently(
        ("describe", change, "-m", "one"), ("describe", change, "-m", "two"), merged=False
    )
    assert "at the same time" in await problem_of(repository, change, UnavailableError)


async def test_an_added_workspace_is_the_same_repository(
    workspace: Workspace, jj: Jj, tmp_path: Path
) -> None:
    change = workspace.commit("first", {"a": "1"})
    workspace.jj("workspace", "add", str(tmp_path / "second"))
    added = JjRepository(jj, tmp_path / "second")
    assert (await added.resolve(change)).change_id == change
    assert await added.git_dir() == workspace.root / ".git"


@pytest.mark.parametrize("content", ["nothing", "a file"])
async def test_a_folder_without_a_repository_is_missing(
    tmp_path: Path, jj: Jj, content: str
) -> None:
    if content == "a file":
        (tmp_path / ".jj").write_text("")
    repository = JjRepository(jj, tmp_path)
    assert "no Jujutsu repository" in await problem_of(repository, "main", MissingError)


async def test_a_broken_repository_is_refused_with_what_jj_says(
    workspace: Workspace, repository: JjRepository
) -> None:
    (workspace.root / ".jj/repo/store/type").write_text("nonsense")
    assert "jj cannot read it" in await problem_of(repository, "main", RefusedError)
