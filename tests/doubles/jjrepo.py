"""Jujutsu repositories, made by the real jj: a person at work, with a name and a home."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """\
[user]
name = "Ishmael"
email = "ishmael@example.com"

[ui]
color = "never"
paginate = "never"

[revset-aliases]
"immutable_heads()" = "none()"
"""


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Each path with its time and size."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = os.lstat(Path(place, name))
            found[str(Path(place, name))] = (status.st_mtime_ns, status.st_size)
    return found


@dataclass(frozen=True)
class Person:
    """Somebody with a jj, a git and a home."""

    jj_program: Path
    home: Path

    @classmethod
    def at(cls, home: Path, jj_program: Path) -> "Person":
        """Somebody who has just moved in."""
        home.mkdir()
        (home / ".jjconfig.toml").write_text(SETTINGS)
        return cls(jj_program, home)

    def run(self, folder: Path, *command: str) -> str:
        """What a program prints that must succeed."""
        variables = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=False)
        complaint = done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"{' '.join(command)}: {complaint}"
        return done.stdout.decode()

    def workspace(self, root: Path, *, colocated: bool = True) -> "Workspace":
        """A new repository."""
        option = "--colocate" if colocated else "--no-colocate"
        self.run(self.home, str(self.jj_program), "git", "init", option, str(root))
        return Workspace(self, root)

    def bare_remote(self, folder: Path) -> Path:
        """A git server's side of a repository."""
        self.run(self.home, "git", "init", "--quiet", "--bare", str(folder))
        return folder


@dataclass(frozen=True)
class Workspace:
    """A repository with a working copy."""

    person: Person
    root: Path

    def jj(self, *arguments: str) -> str:
        """Run jj in the working copy."""
        return self.person.run(self.root, str(self.person.jj_program), *arguments)

    def git(self, *arguments: str) -> str:
        """Run git in the working copy."""
        return self.person.run(self.root, "git", *arguments)

    def write(self, files: Mapping[str, str]) -> None:
        """Put files into the working copy."""
        for path, content in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(content)

    def commit(self, message: str, files: Mapping[str, str] | None = None) -> str:
        """Finish the change of the working copy; yields its id."""
        self.write(files or {})
        self.jj("commit", "--message", message)
        return self.change_id("@-")

    def change_id(self, revset: str) -> str:
        """The change id of one commit."""
        return self.jj("log", "--no-graph", "-r", f"exactly({revset}, 1)", "-T", "change_id")

    def commit_id(self, revset: str) -> str:
        """The commit id of one commit."""
        return self.jj("log", "--no-graph", "-r", f"exactly({revset}, 1)", "-T", "commit_id")

    def operation(self) -> str:
        """The newest operation."""
        return self.jj("operation", "log", "--no-graph", "--limit=1", "-T", "id")

    def concurrently(self, *commands: tuple[str, ...], merged: bool = True) -> None:
        """Run commands as if none knew of the other; the next command merges what they did."""
        operation = self.operation()
        for command in commands:
            self.jj(f"--at-operation={operation}", *command)
        if merged:
            self.jj("log")

    def diverge(self, change_id: str) -> list[str]:
        """Rewrite a change twice at the same time; yields the commits that it has now."""
        self.concurrently(*(("describe", change_id, "-m", text) for text in ("one", "two")))
        revset = f"change_id({change_id})"
        return self.jj("log", "--no-graph", "-r", revset, "-T", 'commit_id ++ "\n"').split()

    def conflict(self, *paths: str) -> str:
        """Merge two commits that disagree about files; yields the change of the merge."""
        self.commit("base", dict.fromkeys(paths, "base\n") | {"peaceful": "base\n"})
        base = self.change_id("@-")
        sides = []
        for side in ("left", "right"):
            self.jj("new", base)
            changes = dict.fromkeys(paths, f"{side}\n") | {f"only-{side}": f"{side}\n"}
            sides.append(self.commit(side, changes))
        self.jj("new", "--message", "merge", *sides)
        return self.change_id("@")

    def conflict_bookmark(self, name: str, *commits: str) -> None:
        """Move a bookmark to different places at the same time."""
        self.concurrently(
            *(("bookmark", "set", "--allow-backwards", name, "-r", commit) for commit in commits)
        )

    def push(self, remote: Path, *bookmarks: str) -> None:
        """Push bookmarks with jj, to a remote that is called origin."""
        if "origin" not in self.jj("git", "remote", "list"):
            self.jj("git", "remote", "add", "origin", str(remote))
        self.jj("git", "push", *(f"--bookmark={name}" for name in bookmarks))
