"""Everything else that is read from a local repository, and that reading leaves no trace."""

from datetime import datetime
from pathlib import Path

import pytest

from doubles.jjrepo import Person, Workspace, everything_in
from pequod.sources.errors import BadReferenceError, RefusedError
from pequod.sources.jj.command import Jj
from pequod.sources.jj.repository import JjRepository


async def test_changed_files_are_both_ends_of_what_was_moved(
    workspace: Workspace, repository: JjRepository
) -> None:
    content = "a text that is long enough to be found again\n" * 9
    workspace.commit("first", {"keep": "1", "edit": "1", "delete": "1", "folder/from": content})
    before = workspace.commit_id("@-")
    for path in ("delete", "folder/from"):
        (workspace.root / path).unlink()
    workspace.commit("second", {"edit": "2", 'add\n"ed"': "1", "folder/to": content})
    after = workspace.commit_id("@-")
    changed = ['add\n"ed"', "delete", "edit", "folder/from", "folder/to"]
    assert await repository.changed_files(before, after) == changed
    assert await repository.changed_files(after, before) == changed
    assert await repository.changed_files(after, after) == []


async def test_only_whole_commit_ids_are_compared(repository: JjRepository) -> None:
    for bad in ("main", "all()", "", "--help", "0" * 39):
        with pytest.raises(BadReferenceError, match="not a whole commit id"):
            await repository.changed_files(bad, "0" * 40)


async def test_operations_are_read_newest_first(
    workspace: Workspace, repository: JjRepository
) -> None:
    workspace.commit("first", {"a": "1"})
    workspace.jj("bookmark", "create", "main", "-r", "@-")
    operations = await repository.operations(2)
    assert operations[0].description.startswith("create bookmark main pointing to commit ")
    assert operations[1].description.startswith("commit ")
    assert operations[0].id == workspace.operation()
    assert operations[0].time >= operations[1].time
    assert isinstance(operations[0].time, datetime)
    assert "@" in operations[0].user
    assert len(await repository.operations(100)) > 2


@pytest.mark.parametrize(("colocated", "place"), [(True, ".git"), (False, ".jj/repo/store/git")])
async def test_the_git_repository_is_found(
    person: Person, tmp_path: Path, jj: Jj, *, colocated: bool, place: str
) -> None:
    workspace = person.workspace(tmp_path / "repository", colocated=colocated)
    change = workspace.commit("first", {"a": "content"})
    repository = JjRepository(jj, workspace.root)
    folder = await repository.git_dir()
    assert folder == workspace.root / place
    commit = (await repository.resolve(change)).commit_id
    shown = person.run(tmp_path, "git", f"--git-dir={folder}", "show", f"{commit}:a")
    assert shown == "content"


async def test_case_74_content_of_another_repository_is_refused(
    person: Person, workspace: Workspace, repository: JjRepository, tmp_path: Path
) -> None:
    secret = person.workspace(tmp_path / "secret")
    secret.commit("secret", {"a": "1"})
    target = workspace.root / ".jj/repo/store/git_target"
    target.write_text(str(secret.root / ".git"))
    with pytest.raises(RefusedError, match="outside of the repository"):
        await repository.git_dir()


async def test_reading_changes_nothing_in_the_repository(
    workspace: Workspace, repository: JjRepository
) -> None:
    change = workspace.commit("first", {"a": "1"})
    workspace.write({"a": "not yet seen by jj"})
    workspace.git("branch", "made-by-git")
    before = everything_in(workspace.root)
    found = await repository.resolve(change)
    await repository.changed_files("0" * 40, found.commit_id)
    await repository.operations(3)
    await repository.git_dir()
    assert everything_in(workspace.root) == before


@pytest.mark.parametrize("place", ["old", "new"])
async def test_the_configuration_of_a_repository_is_not_believed_nor_moved(
    workspace: Workspace, repository: JjRepository, place: str
) -> None:
    """Aliases could give our questions and answers another meaning."""
    change = workspace.commit("first", {"a": "1"})
    workspace.commit("second", {"a": "2"})
    settings = (
        "[revset-aliases]\n'change_id(x)' = 'none()'\n'bookmarks(x)' = 'all()'\n"
        "[template-aliases]\n'json(x)' = '\"{}\"'\n"
    )
    if place == "old":
        (workspace.root / ".jj/repo/config.toml").write_text(settings)
    else:
        file = workspace.jj("config", "path", "--repo").strip()
        Path(file).write_text(settings)
        assert (workspace.root / ".jj/repo/config-id").exists()
    before = everything_in(workspace.root)
    assert (await repository.resolve(change)).change_id == change
    assert everything_in(workspace.root) == before


async def test_the_environment_of_the_operator_is_not_handed_on(
    workspace: Workspace, repository: JjRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change = workspace.commit("first", {"a": "1"})
    (tmp_path / "evil.toml").write_text("[revset-aliases]\n'change_id(x)' = 'none()'\n")
    for name, value in {
        "JJ_CONFIG": str(tmp_path / "evil.toml"),
        "JJ_TRACE": str(tmp_path / "trace"),
        "GIT_DIR": "/nonexistent",
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    assert (await repository.resolve(change)).change_id == change
    assert not (tmp_path / "trace").exists()
