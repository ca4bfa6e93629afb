"""jj, run so that it only reads.

A run sees the repository through a folder of links that leaves out the repository's own
configuration: that could give our revsets and templates another meaning, and jj would move an old
one into the home of whoever looks. It works at the newest operation and never merges concurrent
ones, since that would write. There is no home, no search path, no git and no editor to be found.
"""

import asyncio
import os
import tempfile
from pathlib import Path

from pequod.sources.errors import (
    DeniedError,
    MissingError,
    RefusedError,
    SourceError,
    UnavailableError,
)
from pequod.sources.jj.process import Bounds, Program

_CONFIGURATIONS = frozenset(
    ("config-id", "config.toml", "workspace-config-id", "workspace-config.toml")
)
_SETTINGS = """\
[user]
name = "Pequod"
email = "pequod@localhost"

[operation]
username = "pequod"
hostname = "localhost"

[ui]
color = "never"
paginate = "never"
editor = "false"

[signing]
behavior = "drop"
backend = "none"

[fsmonitor]
backend = "none"

[git]
executable-path = "false"
"""
_GLOBAL_OPTIONS = (
    "--ignore-working-copy",
    "--at-operation=@",
    "--no-pager",
    "--color=never",
    "--quiet",
)
_LONGEST_PATH = 4096


class AmbiguousPrefixError(Exception):
    """More than one id begins so."""


class Jj:
    """The program, ready to read repositories."""

    def __init__(self, program: Path, *, bounds: Bounds | None = None) -> None:
        self._program = program
        self._bounds = bounds or Bounds()

    async def run(self, root: Path, *arguments: str) -> bytes:
        """What jj prints about the repository of a workspace.

        Values of options must be joined to them (`--revisions=…`), so that none is taken for one.
        """
        with tempfile.TemporaryDirectory(prefix="pequod-jj-") as name:
            folder = Path(name)
            try:
                await asyncio.to_thread(_furnish, folder, root)
            except OSError as error:
                raise _unreadable(root, error) from error
            program = Program(
                path=self._program,
                environment=_environment(folder),
                folder=folder,
                bounds=self._bounds,
            )
            view = f"--repository={folder / 'view'}"
            ended = await program.run(view, *_GLOBAL_OPTIONS, *arguments, reference=str(root))
        if ended.code != 0:
            raise failure(str(root), ended.complaint)
        return ended.output


def _environment(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder / "home"),
        "JJ_CONFIG": str(folder / "settings.toml"),
        "PATH": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


def _furnish(folder: Path, root: Path) -> None:
    """Fill a folder with a home, settings, and a view of a workspace without configurations."""
    (folder / "home").mkdir()
    (folder / "settings.toml").write_text(_SETTINGS)
    workspace = (root / ".jj").resolve(strict=True)
    view = folder / "view" / ".jj"
    _link_all(workspace, view, leave_out=_CONFIGURATIONS | {"repo"})
    _link_all(repository_folder(workspace), view / "repo", leave_out=_CONFIGURATIONS)


def _link_all(source: Path, target: Path, *, leave_out: frozenset[str]) -> None:
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in leave_out:
            (target / entry.name).symlink_to(entry)


def repository_folder(workspace: Path) -> Path:
    """The `repo` folder of a workspace's `.jj`; added workspaces only have a file that names it."""
    repository = workspace / "repo"
    if repository.is_file():
        with repository.open("rb") as file:
            repository = workspace / os.fsdecode(file.read(_LONGEST_PATH))
    return repository.resolve(strict=True)


def _unreadable(root: Path, error: OSError) -> SourceError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingError(
            str(root),
            step="open the repository",
            problem="there is no Jujutsu repository",
            next_step="correct the path, or make one with `jj git init`",
        )
    if isinstance(error, PermissionError):
        return DeniedError(
            str(root),
            step="open the repository",
            problem="the operator may not read it",
            next_step="give its user the right to read the folder .jj",
        )
    return UnavailableError(
        str(root),
        step="open the repository",
        problem=error.strerror or str(error),
        next_step="it is tried again; look at the disk of this machine",
    )


def failure(reference: str, complaint: str) -> Exception:
    """What a complaint of jj means."""
    if "prefix" in complaint and "is ambiguous" in complaint:
        return AmbiguousPrefixError(complaint)
    if "more than one operation" in complaint:
        return UnavailableError(
            reference,
            step="jj",
            problem="two operations ran at the same time and were not merged yet",
            next_step="run `jj status` in the repository, which merges them",
        )
    return RefusedError(
        reference,
        step="jj",
        problem=f"jj cannot read it: {complaint}",
        next_step="run `jj log` in the repository and mend what it says",
    )
