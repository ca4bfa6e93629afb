"""Change ids in a git repository that jj has pushed to, read with git alone."""

from pathlib import Path

import pytest

from doubles.jjrepo import Person, Workspace
from pequod.sources.errors import (
    BadReferenceError,
    MissingError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from pequod.sources.jj.process import Bounds
from pequod.sources.jj.remote import GitMirror
from pequod.sources.jj.repository import JjRepository


@pytest.fixture
def remote(person: Person, tmp_path: Path) -> Path:
    return person.bare_remote(tmp_path / "remote")


@pytest.fixture
def mirror(remote: Path) -> GitMirror:
    return GitMirror(remote)


async def test_a_pushed_change_is_what_jj_says_it_is(
    workspace: Workspace, remote: Path, mirror: GitMirror, repository: JjRepository
) -> None:
    below = workspace.commit("below", {"a": "1"})
    change = workspace.commit("Say hello\n\nAnd more.", {"a": "2"})
    workspace.jj("bookmark", "create", "main", "-r", change)
    workspace.push(remote, "main")
    assert await mirror.resolve_change(change) == await repository.resolve(change)
    assert await mirror.resolve_change(change[:7]) == await repository.resolve(change)
    assert await mirror.resolve_change(below) == await repository.resolve(below)


async def test_the_head_of_a_branch_wins_over_an_older_version_below_another(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    workspace.commit("on top", {"a": "2"})
    workspace.jj("bookmark", "create", "old", "-r", "@-")
    workspace.push(remote, "old")
    workspace.jj("describe", change, "-m", "rewritten")
    workspace.jj("bookmark", "create", "new", "-r", change)
    workspace.git("push", str(remote), "new:refs/heads/new")
    found = await mirror.resolve_change(change)
    assert found.commit_id == workspace.commit_id(change)
    assert (found.description, found.bookmarks) == ("rewritten", ("new",))


async def test_two_heads_with_one_change_are_refused_unless_the_refs_say_which(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    commits = workspace.diverge(change)
    for name, commit in zip(("one", "two"), commits, strict=True):
        workspace.git("push", str(remote), f"{commit}:refs/heads/{name}")
    with pytest.raises(RefusedError, match="divergent") as failure:
        await mirror.resolve_change(change)
    assert all(commit[:12] in failure.value.problem for commit in commits)
    refs = [("refs/heads/two", commits[1])]
    assert (await mirror.resolve_change(change, refs=refs)).commit_id == commits[1]


async def test_a_commit_that_was_pushed_with_conflicts_is_refused_with_their_paths(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    change = workspace.conflict("deploy/a.cue", "b.cue")
    commit = workspace.commit_id(change)
    workspace.git("push", str(remote), f"{commit}:refs/heads/main")
    with pytest.raises(RefusedError) as failure:
        await mirror.resolve_change(change)
    assert failure.value.problem.endswith("was pushed with conflicts in b.cue, deploy/a.cue")
    header = await mirror.header(commit)
    assert header.conflicted


async def test_conflicts_are_seen_after_git_has_rewritten_the_commit(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    """Git drops the headers of jj, and keeps its folders as if they were files of the project."""
    commit = workspace.commit_id(workspace.conflict("b.cue"))
    tree = workspace.git("rev-parse", f"{commit}^{{tree}}").strip()
    author = ("-c", "user.name=Git", "-c", "user.email=git@example.com")
    plain = workspace.git(*author, "commit-tree", tree, "-m", "by git").strip()
    workspace.git("push", str(remote), f"{plain}:refs/heads/main")
    header = await mirror.header(plain)
    assert (header.conflicted, header.change_id) == (False, None)
    with pytest.raises(RefusedError, match=r"with conflicts in b\.cue"):
        await mirror.refuse_conflicts(header, reference="main")


async def test_an_annotated_tag_leads_to_its_commit(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    commit = workspace.commit_id(change)
    author = ("-c", "user.name=Git", "-c", "user.email=git@example.com")
    workspace.git(*author, "tag", "--annotate", "v1", "-m", "release", commit)
    workspace.git("push", str(remote), "refs/tags/v1")
    assert await mirror.refs() == [("refs/tags/v1", commit)]
    assert (await mirror.resolve_change(change)).commit_id == commit


async def test_what_was_not_pushed_is_missing(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    with pytest.raises(MissingError):
        await mirror.resolve_change("k" * 32)
    change = workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", change)
    workspace.push(remote, "main")
    with pytest.raises(MissingError, match="no commit with this change id"):
        await mirror.resolve_change("k" * 32)
    refs = [("refs/heads/never-fetched", "1" * 40)]
    with pytest.raises(MissingError):
        await mirror.resolve_change(change, refs=refs)
    for commit in ("1" * 40, "main", "--all"):
        with pytest.raises(MissingError):
            await mirror.header(commit)


@pytest.mark.parametrize("text", ["", "main", "abc", "k" * 33, "-k", "k\nk", "--all", "KK"])
async def test_case_71_only_letters_of_change_ids_are_looked_for(
    mirror: GitMirror, text: str
) -> None:
    with pytest.raises(BadReferenceError):
        await mirror.resolve_change(text)


async def test_another_commit_in_place_of_the_right_one_is_not_believed(
    workspace: Workspace, remote: Path, mirror: GitMirror
) -> None:
    change = workspace.commit("honest", {"a": "1"})
    honest = workspace.commit_id(change)
    workspace.commit("evil", {"a": "2"})
    evil = workspace.commit_id("@-")
    workspace.git("push", str(remote), f"{honest}:refs/heads/main", f"{evil}:refs/heads/other")
    workspace.git(f"--git-dir={remote}", "replace", honest, evil)
    found = await mirror.resolve_change(change, refs=[("refs/heads/main", honest)])
    assert found.description == "honest"


async def test_a_folder_that_is_no_mirror_and_a_mirror_that_is_too_large(
    workspace: Workspace, remote: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError, match="not a git repository"):
        await GitMirror(tmp_path).resolve_change("k" * 32)
    with pytest.raises(UnavailableError, match="cannot be started"):
        await GitMirror(tmp_path / "nothing").resolve_change("k" * 32)
    workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", "@-")
    workspace.push(remote, "main")
    with pytest.raises(TooLargeError):
        await GitMirror(remote, bounds=Bounds(output_bytes=100)).resolve_change("k" * 32)
