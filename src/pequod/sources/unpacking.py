"""Files of somebody else, written one by one below a folder: names and sizes are checked first.

Everything that is not a regular file or a folder never gets here. Several archives may be laid
over each other; a name is only ever written once.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from pequod.base.logs import one_line
from pequod.sources.limits import Limits
from pequod.sources.tree import TreeError, TreeTooLargeError

_DRIVE = re.compile(r"[A-Za-z]:")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_LONGEST_SEGMENT = 255
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a file in a tree; None if nothing is."""
    if name.startswith("/") or _DRIVE.match(name):
        return "is absolute"
    if "\\" in name:
        return "has a backslash"
    if any(unicodedata.category(one) in _INVISIBLE for one in name):
        return "has characters that cannot be seen"
    for segment in name.split("/"):
        if segment in {"", ".", ".."}:
            return "has empty, . or .. parts"
        if len(os.fsencode(segment)) > _LONGEST_SEGMENT:
            return f"has a part of more than {_LONGEST_SEGMENT} bytes"
    return None


class Target(Protocol):
    """Where the entries of an archive go."""

    @property
    def limits(self) -> Limits:
        """How much may go there."""
        ...

    def add_folder(self, name: str) -> None:
        """Make a folder."""
        ...

    def add_file(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file."""
        ...


class Unpacking:
    """A folder while it is filled, and what is in it so far."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        self._folder = folder
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._entries = 0
        self._bytes = 0

    def add_folder(self, name: str) -> None:
        """Make a folder; whoever names it again is right as well."""
        self._count()
        name = name.removeprefix("./").removesuffix("/")
        if name not in {"", "."}:
            self._check(name)
            self._make(name)

    def add_file(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file, for as long as the content is not too much."""
        self._count()
        name = name.removeprefix("./")
        self._check(name)
        if name in self._files:
            raise TreeError(f"{name} is there twice")
        if name in self._folders:
            raise TreeError(f"{name} is both a file and a folder")
        self._make(name.rpartition("/")[0])
        self._remember(name, self._files)
        try:
            self._write(name, content)
        except OSError as error:
            raise TreeError(f"{name} cannot be written: {error.strerror}") from error

    def _count(self) -> None:
        """Count an entry, even one that says nothing new."""
        self._entries += 1
        if self._entries > self.limits.files:
            raise TreeTooLargeError(f"more than {self.limits.files} files")

    def _remember(self, name: str, kind: set[str]) -> None:
        kind.add(name)
        if len(self._files) + len(self._folders) > self.limits.files:
            raise TreeTooLargeError(f"more than {self.limits.files} files")

    def _check(self, name: str) -> None:
        problem = name_problem(name)
        if problem is not None:
            raise TreeError(f"the name {one_line(repr(name), 100)} {problem}")
        if name.count("/") >= self.limits.depth:
            raise TreeTooLargeError(f"{name[:80]}… is deeper than {self.limits.depth} folders")
        if len(name.encode()) > self.limits.path_bytes:
            raise TreeTooLargeError(f"{name[:80]}… is longer than {self.limits.path_bytes} bytes")

    def _make(self, name: str) -> None:
        segments = name.split("/") if name else []
        for length in range(1, len(segments) + 1):
            path = "/".join(segments[:length])
            if path in self._files:
                raise TreeError(f"{path} is both a file and a folder")
            if path not in self._folders:
                self._make_one(path)

    def _make_one(self, path: str) -> None:
        self._remember(path, self._folders)
        try:
            (self._folder / path).mkdir(mode=0o755)
        except OSError as error:
            raise TreeError(f"{path} cannot be made: {error.strerror}") from error

    def _write(self, name: str, content: Iterable[bytes]) -> None:
        size = 0
        with os.fdopen(os.open(self._folder / name, _FLAGS, 0o644), "wb") as file:
            for part in content:
                size += len(part)
                self._bytes += len(part)
                if size > self.limits.file_bytes:
                    raise TreeTooLargeError(f"{name} is larger than {self.limits.file_bytes} bytes")
                if self._bytes > self.limits.tree_bytes:
                    raise TreeTooLargeError(
                        f"all files together are over {self.limits.tree_bytes} bytes"
                    )
                file.write(part)


class WithoutTop:
    """Takes away the one folder that everything in an archive is in, as charts are packed."""

    def __init__(self, inner: Target) -> None:
        self._inner = inner
        self._top = ""

    @property
    def limits(self) -> Limits:
        """How much may go there."""
        return self._inner.limits

    def add_folder(self, name: str) -> None:
        """Make a folder below the one that is taken away."""
        self._inner.add_folder(self._below(name.removesuffix("/") + "/"))

    def add_file(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file below the one that is taken away."""
        self._inner.add_file(self._below(name), content)

    def _below(self, name: str) -> str:
        top, slash, rest = name.removeprefix("./").partition("/")
        if not slash or top in {".", ".."} or (self._top and top != self._top):
            raise TreeError(f"{name[:100]!r} is not in the same folder as everything else")
        self._top = top
        return rest
