"""Change ids in a git repository that jj has pushed to, read with git alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from doubles.gitrepo import Repository
from doubles.jjrepo import Person, Workspace
from pequod.sources.errors import MissingError, RefusedError
from pequod.sources.git.command import Git
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.verdicts import BrokenError
from pequod.sources.jj.commits import CommitHeader
from pequod.sources.jj.remote import Ref, candidates, chosen, header, refuse_conflicts
from pequod.sources.jj.repository import JjRepository
from pequod.sources.limits import Limits


@pytest.fixture
def remote(person: Person, tmp_path: Path) -> Path:
    return person.bare_remote(tmp_path / "remote")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    home = tmp_path / "empty"
    home.mkdir()
    return Git(home, Limits(seconds=20))


@pytest.fixture
def mirror(remote: Path, git: Git) -> Mirror:
    """As if all of the remote had been fetched."""
    return Mirror(remote, git, fresh=False)


async def change_of(mirror: Mirror, change_id: str, refs: Sequence[Ref] = ()) -> CommitHeader:
    return chosen(change_id, await candidates(mirror, change_id), refs)


async def test_a_pushed_change_is_what_jj_says_it_is(
    workspace: Workspace, remote: Path, mirror: Mirror, repository: JjRepository
) -> None:
    below = workspace.commit("below", {"a": "1"})
    change = workspace.commit("Say hello\n\nAnd more.", {"a": "2"})
    workspace.jj("bookmark", "create", "main", "-r", change)
    workspace.push(remote, "main")
    for asked, whole in ((change, change), (change[:7], change), (below, below)):
        pushed, local = await change_of(mirror, asked), await repository.resolve(whole)
        assert (pushed.change_id, pushed.commit_id) == (local.change_id, local.commit_id)
        assert (pushed.description, pushed.authored_at) == (local.description, local.authored_at)


async def test_the_head_of_a_branch_wins_over_an_older_version_below_another(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    workspace.commit("on top", {"a": "2"})
    workspace.jj("bookmark", "create", "old", "-r", "@-")
    workspace.push(remote, "old")
    workspace.jj("describe", change, "-m", "rewritten")
    workspace.jj("bookmark", "create", "new", "-r", change)
    workspace.git("push", str(remote), "new:refs/heads/new")
    rewritten = workspace.commit_id(change)
    found = await change_of(mirror, change, [("refs/heads/new", rewritten)])
    assert (found.commit_id, found.description) == (rewritten, "rewritten")


async def test_two_heads_with_one_change_are_refused_unless_the_refs_say_which(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    commits = workspace.diverge(change)
    for name, commit in zip(("one", "two"), commits, strict=True):
        workspace.git("push", str(remote), f"{commit}:refs/heads/{name}")
    with pytest.raises(RefusedError, match="divergent") as failure:
        await change_of(mirror, change)
    assert all(commit[:12] in failure.value.problem for commit in commits)
    refs = [("refs/heads/two", commits[1])]
    assert (await change_of(mirror, change, refs)).commit_id == commits[1]


async def test_a_commit_that_was_pushed_with_conflicts_is_refused_with_their_paths(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    change = workspace.conflict("deploy/a.cue", "b.cue")
    commit = workspace.commit_id(change)
    workspace.git("push", str(remote), f"{commit}:refs/heads/main")
    found = await header(mirror, commit)
    assert found.conflicted
    with pytest.raises(RefusedError) as failure:
        await refuse_conflicts(mirror, found, reference="main")
    assert failure.value.problem.endswith("was pushed with conflicts in b.cue, deploy/a.cue")


async def test_conflicts_are_seen_after_git_has_rewritten_the_commit(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    """Git drops the headers of jj, and keeps its folders as if they were files of the project."""
    commit = workspace.commit_id(workspace.conflict("b.cue"))
    tree = workspace.git("rev-parse", f"{commit}^{{tree}}").strip()
    author = ("-c", "user.name=Git", "-c", "user.email=git@example.com")
    plain = workspace.git(*author, "commit-tree", tree, "-m", "by git").strip()
    workspace.git("push", str(remote), f"{plain}:refs/heads/main")
    found = await header(mirror, plain)
    assert (found.conflicted, found.change_id) == (False, None)
    with pytest.raises(RefusedError, match=r"with conflicts in b\.cue"):
        await refuse_conflicts(mirror, found, reference="main")


@pytest.mark.parametrize("inputs", [1, 33])
async def test_conflicts_whose_paths_cannot_be_found_are_refused_all_the_same(
    git: Git, tmp_path: Path, inputs: int
) -> None:
    """What looks like an input of a conflict may be a file, or one of very many."""
    repository = Repository(tmp_path / "crafted")
    empty, blob = repository.tree(), repository.blob(b"")
    names = (f".jjconflict-side-{number:02}" for number in range(inputs))
    kind = ("40000", empty) if inputs > 1 else ("100644", blob)
    commit = repository.commit_tree(repository.tree(*((*kind, name) for name in names)))
    mirror = Mirror(repository.folder, git, fresh=False)
    with pytest.raises(RefusedError, match="was pushed with conflicts;"):
        await refuse_conflicts(mirror, await header(mirror, commit), reference="main")


async def test_an_annotated_tag_leads_to_its_commit(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    change = workspace.commit("first", {"a": "1"})
    commit = workspace.commit_id(change)
    author = ("-c", "user.name=Git", "-c", "user.email=git@example.com")
    workspace.git(*author, "tag", "--annotate", "v1", "-m", "release", commit)
    workspace.git("push", str(remote), "refs/tags/v1")
    assert (await change_of(mirror, change)).commit_id == commit


async def test_what_was_not_pushed_is_missing(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    with pytest.raises(MissingError):
        await change_of(mirror, "k" * 32)
    change = workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", change)
    workspace.push(remote, "main")
    with pytest.raises(MissingError, match="no commit with this change id"):
        await change_of(mirror, "k" * 32)
    for commit in ("1" * 40, "main", "--all"):
        with pytest.raises(MissingError):
            await header(mirror, commit)


async def test_another_commit_in_place_of_the_right_one_is_not_believed(
    workspace: Workspace, remote: Path, mirror: Mirror
) -> None:
    change = workspace.commit("honest", {"a": "1"})
    honest = workspace.commit_id(change)
    workspace.commit("evil", {"a": "2"})
    evil = workspace.commit_id("@-")
    workspace.git("push", str(remote), f"{honest}:refs/heads/main", f"{evil}:refs/heads/other")
    workspace.git(f"--git-dir={remote}", "replace", honest, evil)
    assert (await change_of(mirror, change)).description == "honest"
    assert (await header(mirror, honest)).description == "honest"


async def test_a_folder_that_is_no_mirror_is_broken(git: Git, tmp_path: Path) -> None:
    with pytest.raises(BrokenError, match="not a git repository"):
        await candidates(Mirror(tmp_path, git, fresh=False), "k" * 32)
