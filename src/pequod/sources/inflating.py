"""Compressed bytes, decompressed piece by piece and never more than what is reasonable."""

import gzip
import zlib
from typing import BinaryIO, Protocol

from pequod.sources.limits import MEBIBYTE, Limits
from pequod.sources.tree import TreeError, TreeTooLargeError

_RATIO = 200
"""Text that repeats itself shrinks to a fiftieth; a bomb to less than a thousandth."""
_HARMLESS = 8 * MEBIBYTE
_HEADER_BYTES = 4096
"""What an entry may take besides its content."""


class Reader(Protocol):
    """Something that yields bytes."""

    def read(self, size: int, /) -> bytes:
        """At most so many; none at the end."""
        ...


class Account:
    """How much came in, how much came out, and that one is in proportion to the other."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.tree_bytes + limits.files * _HEADER_BYTES
        self._received = 0
        self._yielded = 0

    def received(self, size: int) -> None:
        """Note how much of the file is used so far."""
        self._received = size

    def give(self, size: int) -> None:
        """Note bytes as they are used; raises when they are too many."""
        self._yielded += size
        if self._yielded > self._most:
            raise TreeTooLargeError(f"it unpacks to more than {self._most} bytes")
        if self._yielded > max(_HARMLESS, self._received * _RATIO):
            raise TreeTooLargeError(
                f"it unpacks to more than {_RATIO} times its size, as only bombs do"
            )


class Gunzipped:
    """What a gzip file holds; it may consist of several members."""

    def __init__(self, file: BinaryIO, account: Account) -> None:
        self._file = file
        self._account = account
        self._stream = gzip.GzipFile(fileobj=file, mode="rb")

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many."""
        try:
            part = self._stream.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise TreeError(f"it is no intact gzip file: {error}") from error
        self._account.received(self._file.tell())
        self._account.give(len(part))
        return part


class Plain:
    """A file as it is."""

    def __init__(self, file: BinaryIO, account: Account) -> None:
        self._file = file
        self._account = account

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many."""
        part = self._file.read(size)
        self._account.received(self._file.tell())
        self._account.give(len(part))
        return part
