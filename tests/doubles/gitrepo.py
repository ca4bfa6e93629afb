"""Repositories for tests, written with plumbing: also what no honest client would commit."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Submodule:
    """A commit of another repository."""

    commit: str


Content = bytes | str | Link | Submodule


class Repository:
    """A bare repository that a server serves."""

    def __init__(self, folder: Path, *, algorithm: str = "sha1") -> None:
        self.folder = folder
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            options = ("--quiet", "--bare", "--initial-branch=main", f"--object-format={algorithm}")
            self._run("init", *options, str(folder))
            self.git("config", "uploadpack.allowFilter", "true")

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git in the repository."""
        return self._run(f"--git-dir={self.folder}", *arguments, stdin=stdin)

    def commit(
        self, files: Mapping[str, Content], message: str = "change", *, branch: str = "main"
    ) -> str:
        """Add a commit with these files besides those that were there."""
        ref = f"refs/heads/{branch}"
        stream = [f"commit {ref}\ncommitter Ada <ada@test> 1700000000 +0000\n".encode()]
        stream.append(_data(message.encode()))
        if self.head(branch):
            stream.append(f"from {ref}^0\n".encode())
        for path, content in files.items():
            stream.append(_file(path, content))
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream) + b"\n")
        return self.head(branch)

    def head(self, branch: str = "main") -> str:
        try:
            return self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        except subprocess.CalledProcessError:
            return ""

    def tag(self, name: str, commit: str, *, annotated: bool = False) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@test")
        how = ("-a", "-m", name) if annotated else ()
        self.git(*who, "tag", "--force", *how, name, commit)

    def point(self, ref: str, commit: str) -> None:
        self.git("update-ref", ref, commit)

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """A tree of (mode, object, name), without any check of its names."""
        kinds = {"40000": "tree", "160000": "commit"}
        lines = "".join(
            f"{mode.zfill(6)} {kinds.get(mode, 'blob')} {one}\t{name}\0"
            for mode, one, name in entries
        )
        return self.git("mktree", "-z", "--missing", stdin=lines.encode())

    def commit_tree(self, tree: str, *, branch: str = "main") -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@test")
        commit = self.git(*who, "commit-tree", "-m", "crafted", tree)
        self.point(f"refs/heads/{branch}", commit)
        return commit

    @staticmethod
    def _run(*arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments], input=stdin, capture_output=True, check=True, env=ENVIRONMENT
        )
        return done.stdout.decode().strip()


def _data(content: bytes) -> bytes:
    return f"data {len(content)}\n".encode() + content + b"\n"


def _file(path: str, content: Content) -> bytes:
    if isinstance(content, Submodule):
        return f"M 160000 {content.commit} {path}\n".encode()
    mode = "120000" if isinstance(content, Link) else "100644"
    raw = content.target if isinstance(content, Link) else content
    return f"M {mode} inline {path}\n".encode() + _data(
        raw.encode() if isinstance(raw, str) else raw
    )
