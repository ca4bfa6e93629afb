"""The tree of an artifact: its digest, and what it may consist of.

Regular files, folders, and links that stay inside. The digest covers names, contents and targets
of links; not times, owners or modes, which differ between two ways to the same content.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pequod.sources.limits import Limits

_CHUNK = 2**20


class TreeError(Exception):
    """A tree that may not be used; the message names the path."""


class TreeTooLargeError(TreeError):
    """A tree that is more than its limits."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a tree."""

    path: str
    """Relative, with slashes."""
    kind: str
    """`file`, `folder` or `link`."""
    size: int = 0


def entries(root: Path) -> Iterator[Entry]:
    """Everything below a folder, sorted, links not followed."""
    found = sorted(os.scandir(root), key=lambda entry: os.fsencode(entry.name))
    yield from _below(found, "")


def _below(found: list[os.DirEntry[str]], prefix: str) -> Iterator[Entry]:
    for entry in found:
        path = prefix + entry.name
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            yield Entry(path, "link")
        elif stat.S_ISDIR(mode):
            yield Entry(path, "folder")
            below = sorted(os.scandir(entry.path), key=lambda one: os.fsencode(one.name))
            yield from _below(below, f"{path}/")
        elif stat.S_ISREG(mode):
            yield Entry(path, "file", entry.stat(follow_symlinks=False).st_size)
        else:
            raise TreeError(f"{path} is neither a file, a folder nor a link")


def check(root: Path, limits: Limits) -> None:
    """Refuse a tree that is too large, or from which a link leads out."""
    total = 0
    real = root.resolve()
    for count, entry in enumerate(entries(root), start=1):
        total += entry.size
        if count > limits.files:
            raise TreeTooLargeError(f"more than {limits.files} files")
        if entry.size > limits.file_bytes:
            raise TreeTooLargeError(f"{entry.path} is larger than {limits.file_bytes} bytes")
        if total > limits.tree_bytes:
            raise TreeTooLargeError(f"all files together are over {limits.tree_bytes} bytes")
        if entry.path.count("/") >= limits.depth:
            raise TreeTooLargeError(f"{entry.path} is deeper than {limits.depth} folders")
        if len(os.fsencode(entry.path)) > limits.path_bytes:
            raise TreeTooLargeError(f"{entry.path[:80]}… is longer than {limits.path_bytes} bytes")
        if entry.kind == "link":
            _check_link(root / entry.path, entry.path, real)


def _check_link(link: Path, path: str, root: Path) -> None:
    target = link.readlink()
    if target.is_absolute():
        raise TreeError(f"{path} is a link to {target}, which is outside of the tree")
    try:
        resolved = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise TreeError(f"{path} is a link that leads nowhere ({target})") from error
    if not resolved.is_relative_to(root):
        raise TreeError(f"{path} is a link to {target}, which is outside of the tree")


def digest(root: Path) -> str:
    """`sha256:…` of everything below a folder."""
    whole = hashlib.sha256()
    for entry in entries(root):
        if entry.kind == "folder":
            continue
        whole.update(f"{entry.kind} ".encode() + os.fsencode(entry.path) + b"\0")
        whole.update(_content(root / entry.path, entry.kind))
    return f"sha256:{whole.hexdigest()}"


def _content(path: Path, kind: str) -> bytes:
    """The SHA-256 of what a file holds, or of where a link leads."""
    if kind == "link":
        return hashlib.sha256(os.fsencode(path.readlink())).digest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def seal(root: Path) -> None:
    """Take away the right to change what is inside, so far as that does not keep it from moving."""
    for entry in reversed(list(entries(root))):
        path = root / entry.path
        if entry.kind == "file":
            path.chmod(0o444)
        elif entry.kind == "folder":
            path.chmod(0o555)
    root.chmod(0o755)
