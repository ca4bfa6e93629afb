"""Archives of somebody else become files: tar, compressed or not, and zip; told apart by content.

Blocking; sources call it in a thread. Raises TreeError, or TreeTooLargeError, with the name.
"""

from pathlib import Path

from pequod.sources import tarball, ziparchive
from pequod.sources.inflating import Account, Gunzipped, Plain
from pequod.sources.limits import Limits
from pequod.sources.unpacking import Target, Unpacking

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def extract(archive: Path, into: Path, limits: Limits) -> None:
    """Write what an archive holds into an empty folder."""
    lay_over(archive, Unpacking(into, limits))


def lay_over(archive: Path, target: Target) -> None:
    """Write what an archive holds besides what is there already."""
    account = Account(target.limits)
    with archive.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(_ZIP):
            ziparchive.unpack(file, target, account)
        elif magic.startswith(_GZIP):
            tarball.unpack(Gunzipped(file, account), target)
        else:
            tarball.unpack(Plain(file, account), target)
