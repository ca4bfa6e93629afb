"""Archives of somebody else become files: tar, compressed or not, and zip; told apart by content.

Blocking; sources call it in a thread. Raises TreeError, or TreeTooLargeError, with the name.
"""

from collections.abc import Iterable
from pathlib import Path

from pequod.sources import tarball, ziparchive
from pequod.sources.inflating import Account, Gunzipped, Plain
from pequod.sources.limits import Limits
from pequod.sources.tree import TreeError
from pequod.sources.unpacking import Unpacking

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def extract(archive: Path, into: Path, limits: Limits) -> None:
    """Write what an archive holds into an empty folder."""
    lay_over(archive, Unpacking(into, limits))


def lay_over(archive: Path, unpacking: Unpacking) -> None:
    """Write what an archive holds besides what is there already."""
    account = Account(unpacking.limits)
    with archive.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(_ZIP):
            ziparchive.unpack(file, unpacking, account)
        elif magic.startswith(_GZIP):
            tarball.unpack(Gunzipped(file, account), unpacking)
        else:
            tarball.unpack(Plain(file, account), unpacking)


class InFolder(Unpacking):
    """Takes away the one folder that everything in an archive is in, as charts are packed."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        super().__init__(folder, limits)
        self._top = ""

    def add_folder(self, name: str) -> None:
        """Make a folder below the one that is taken away."""
        super().add_folder(self._below(name.removesuffix("/") + "/"))

    def add_file(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file below the one that is taken away."""
        super().add_file(self._below(name), content)

    def _below(self, name: str) -> str:
        top, slash, rest = name.removeprefix("./").partition("/")
        if not slash or (self._top and top != self._top):
            raise TreeError(f"{name[:100]!r} is not in the same folder as everything else")
        self._top = top
        return rest
