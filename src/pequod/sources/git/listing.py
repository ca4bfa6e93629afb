"""What a tree consists of, judged by its names before any file of it is fetched or written."""

import os
import re
from dataclasses import dataclass, field

from pequod.sources.errors import MissingError, RefusedError, TooLargeError
from pequod.sources.git.address import Wanted
from pequod.sources.git.command import TooMuchError
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.names import is_git_folder
from pequod.sources.git.verdicts import BrokenError
from pequod.sources.limits import Limits

_RECORD = re.compile(rb"(\d{5,6}) (blob|tree|commit) ([0-9a-f]{40,64})\t(.*)", re.DOTALL)
_LINK = b"120000"


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of a tree, or a link."""

    path: str
    object: str
    link: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a tree, and the repositories in it, which are left out."""

    blobs: list[Blob] = field(default_factory=list)
    submodules: list[str] = field(default_factory=list)


async def listing(mirror: Mirror, top: str, reference: Wanted, limits: Limits) -> Listing:
    """The names in a tree, of files and folders at any depth."""
    try:
        output = await mirror.read(
            *("ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", top),
            records=(b"\0", limits.files),
        )
    except TooMuchError:
        raise _too_large(reference, f"it has more than {limits.files} files") from None
    return _judged(output, reference, limits)


def _judged(output: bytes, reference: Wanted, limits: Limits) -> Listing:
    found = Listing()
    for mode, kind, object_, name in _records(output):
        path = os.fsdecode(name)
        _check_name(path, reference, limits)
        if kind == b"blob":
            found.blobs.append(Blob(path, object_.decode(), mode == _LINK))
        elif kind == b"commit":
            found.submodules.append(path)
    return found


def _records(output: bytes) -> list[tuple[bytes, bytes, bytes, bytes]]:
    records = []
    for record in output.split(b"\0")[:-1]:
        match = _RECORD.fullmatch(record)
        if match is None:
            raise BrokenError("a tree cannot be read")
        records.append((match[1], match[2], match[3], match[4]))
    return records


def _check_name(path: str, reference: Wanted, limits: Limits) -> None:
    name = path.rpartition("/")[2]
    if name in {"", ".", ".."} or is_git_folder(name):
        raise RefusedError(
            str(reference),
            step="tree",
            problem=f"{path[:200]!r} is a name that a tree may not have",
            next_step="remove it from the repository",
        )
    if path.count("/") >= limits.depth:
        raise _too_large(reference, f"{path[:80]}… is deeper than {limits.depth} folders")
    if len(os.fsencode(path)) > limits.path_bytes:
        raise _too_large(reference, f"{path[:80]}… is longer than {limits.path_bytes} bytes")


async def wanted_folder(mirror: Mirror, tree: str, reference: Wanted) -> str:
    """The tree of the folder that a reference wants, found in that of the commit."""
    if not reference.path:
        return tree
    found = _records(await mirror.read(*_look(tree), reference.path))
    if not found:
        raise _missing(
            reference, "there is no such folder", await _neighbours(mirror, tree, reference)
        )
    _, kind, object_, _ = found[0]
    if kind != b"tree":
        what = "a submodule" if kind == b"commit" else "no folder"
        raise _missing(reference, f"it is {what}", await _neighbours(mirror, tree, reference))
    return object_.decode()


async def _neighbours(mirror: Mirror, tree: str, reference: Wanted) -> str:
    """The folders in the deepest part of the path that does exist."""
    parts = reference.path.split("/")[:-1]
    while parts:
        above = "/".join(parts) + "/"
        if found := await mirror.read(*_look(tree, "-d"), above):
            return _names(found)
        parts.pop()
    return _names(await mirror.read(*_look(tree, "-d")))


def _look(tree: str, *options: str) -> tuple[str, ...]:
    return ("ls-tree", "-z", "--full-tree", *options, "--end-of-options", tree)


def _names(output: bytes) -> str:
    names = [os.fsdecode(record[3]) for record in _records(output)]
    return ", ".join(names[:10]) or "none"


def _missing(reference: Wanted, problem: str, folders: str) -> MissingError:
    return MissingError(
        str(reference),
        step="path",
        problem=f"path {reference.path}: {problem}",
        next_step=f"use a folder that is there (folders: {folders})",
    )


def _too_large(reference: Wanted, problem: str) -> TooLargeError:
    return TooLargeError(
        str(reference), step="tree", problem=problem, next_step="point to a smaller folder"
    )
