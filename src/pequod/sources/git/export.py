"""The files of a commit, written by us: no checkout, so no filter, attribute or hook has a say.

Links are made last, so that no file is ever written through one; whether they stay inside is for
the store to check, which sees the tree as a reader will.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pequod.sources.errors import RefusedError, TooLargeError
from pequod.sources.git.address import Wanted
from pequod.sources.git.listing import Blob, Listing, listing
from pequod.sources.git.mirror import Mirror, Way
from pequod.sources.git.verdicts import BrokenError
from pequod.sources.limits import Limits

_LONGEST_TARGET = 4096
_MISSING = "missing"
_CHUNK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A folder of a commit, ready to be written."""

    listing: Listing
    sizes: dict[str, int]
    reference: Wanted

    async def write(self, mirror: Mirror, folder: Path) -> None:
        """Write the files into an empty folder."""
        blobs = self.listing.blobs
        writer = _Writer(self.sizes, self.reference, folder)
        asked = "".join(f"{one.object}\n" for one in blobs).encode()
        take = partial(writer.take, blobs)
        await mirror.read("cat-file", "--batch", "--buffer", stdin=asked, consume=take)


async def prepare(
    mirror: Mirror, top: str, reference: Wanted, *, limits: Limits, way: Way | None
) -> Export:
    """Have every file of a tree here, as far as its names and then its sizes are acceptable.

    Without a way to the server, what is not here was left out for its size.
    """
    found = await listing(mirror, top, reference, limits)
    sizes = await _sizes(mirror, found.blobs)
    absent = dict.fromkeys(one.object for one in found.blobs if one.object not in sizes)
    if absent and way is not None:
        await mirror.bring_objects(absent, way)
        sizes = await _sizes(mirror, found.blobs)
    _check(found.blobs, sizes, reference, limits)
    return Export(listing=found, sizes=sizes, reference=reference)


async def _sizes(mirror: Mirror, blobs: list[Blob]) -> dict[str, int]:
    """How large each file is; those that are not here are left out."""
    asked = "".join(f"{one}\n" for one in dict.fromkeys(blob.object for blob in blobs)).encode()
    output = await mirror.read("cat-file", "--batch-check", "--buffer", stdin=asked)
    lines = (line.split(" ") for line in output.decode().splitlines())
    return {line[0]: int(line[2]) for line in lines if line[1] != _MISSING}


def _check(blobs: list[Blob], sizes: dict[str, int], reference: Wanted, limits: Limits) -> None:
    total = 0
    for blob in blobs:
        # What the filter of the fetch has left out is too large by definition.
        size = sizes.get(blob.object, limits.file_bytes + 1)
        total += size
        if size > limits.file_bytes:
            problem = f"{blob.path[:200]} is larger than {limits.file_bytes} bytes"
            raise _too_large(reference, problem)
        if blob.link and size > _LONGEST_TARGET:
            raise _bad_link(reference, blob)
    if total > limits.tree_bytes:
        raise _too_large(reference, f"all files together are over {limits.tree_bytes} bytes")


def _too_large(reference: Wanted, problem: str) -> TooLargeError:
    return TooLargeError(
        str(reference), step="tree", problem=problem, next_step="point to a smaller folder"
    )


class _Writer:
    """Takes the stream of `cat-file --batch` apart."""

    def __init__(self, sizes: dict[str, int], reference: Wanted, folder: Path) -> None:
        self._sizes = sizes
        self._reference = reference
        self._folder = folder
        self._made = {folder}

    def take(self, blobs: list[Blob], stream: BinaryIO) -> None:
        """Write all files, then all links."""
        links: list[tuple[Blob, bytes]] = []
        for blob in blobs:
            size = self._sizes[blob.object]
            if stream.readline() != f"{blob.object} blob {size}\n".encode():
                raise BrokenError("a file cannot be read")
            if blob.link:
                links.append((blob, stream.read(size)))
            else:
                _copy(stream, self._place(blob), size)
            stream.read(1)
        for blob, target in links:
            self._link(blob, target)

    def _place(self, blob: Blob) -> Path:
        place = self._folder / blob.path
        if place.parent not in self._made:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(place.parent)
        return place

    def _link(self, blob: Blob, target: bytes) -> None:
        if not target or b"\0" in target:
            raise _bad_link(self._reference, blob)
        self._place(blob).symlink_to(os.fsdecode(target))


def _copy(stream: BinaryIO, place: Path, size: int) -> None:
    with place.open("xb") as file:
        left = size
        while part := stream.read(min(left, _CHUNK)):
            file.write(part)
            left -= len(part)
    if left:
        raise BrokenError("a file breaks off")


def _bad_link(reference: Wanted, blob: Blob) -> RefusedError:
    return RefusedError(
        str(reference),
        step="tree",
        problem=f"{blob.path[:200]} is a link to what cannot be a path",
        next_step="remove it from the repository",
    )
