"""Zip archives, read by their directory; files that share bytes, as in bombs, are refused.

Only stored and deflated files are taken, and only archives that are one file.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pequod.sources.inflating import Account
from pequod.sources.limits import Limits
from pequod.sources.tree import TreeError, TreeTooLargeError
from pequod.sources.unpacking import Target

_CHUNK = 2**20
_TAIL = struct.Struct("<4s4H2IH")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_LONGEST_COMMENT = 2**16
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1
_UNIX = 3
_FORMAT_MASK, _FOLDER_MODE, _FILE_MODE = 0o170000, 0o040000, 0o100000
_MOST_32, _MOST_16 = 0xFFFF_FFFF, 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: str
    method: int
    checksum: int
    packed: int
    size: int
    place: int
    folder: bool


def unpack(file: BinaryIO, target: Target, account: Account) -> None:
    """Write the files and folders of an archive."""
    whole = file.seek(0, os.SEEK_END)
    account.received(whole)
    found = sorted(_entries(file, whole, target.limits), key=lambda entry: entry.place)
    end = 0
    for entry in found:
        if entry.place < end:
            raise TreeError(f"{entry.name[:100]} shares its bytes with another file")
        start = _start(file, entry)
        end = start + entry.packed
        if entry.folder:
            target.add_folder(entry.name)
        else:
            target.add_file(entry.name, _content(file, entry, start, account))


def _entries(file: BinaryIO, whole: int, limits: Limits) -> Iterator[_Entry]:
    count, size, place = _directory(file, whole)
    if count > limits.files:
        raise TreeTooLargeError(f"more than {limits.files} files")
    file.seek(place)
    left = size
    for _ in range(count):
        fields = _ENTRY.unpack(_exactly(file, _ENTRY.size))
        sizes = fields[10], fields[11], fields[12]
        left -= _ENTRY.size + sum(sizes)
        if fields[0] != b"PK\x01\x02" or left < 0:
            raise _broken("its directory is wrong")
        name, _, _ = (_exactly(file, one) for one in sizes)
        yield _entry(name, fields)
    if left:
        raise _broken("its directory is longer than it says")


def _directory(file: BinaryIO, whole: int) -> tuple[int, int, int]:
    """How many entries there are, how long they are together, and where they begin."""
    start = max(0, whole - _TAIL.size - _LONGEST_COMMENT)
    file.seek(start)
    tail = file.read(whole - start)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or len(tail) - found < _TAIL.size:
        raise _broken("it has no directory")
    _, disk, first_disk, here, count, size, place, comment = _TAIL.unpack_from(tail, found)
    if disk or first_disk or here != count or found + _TAIL.size + comment != len(tail):
        raise _broken("it is a part of one, or there is something after its end")
    if count == _MOST_16 or _MOST_32 in {size, place}:
        raise TreeTooLargeError(f"{_MOST_16} files or more are too many for a zip archive")
    if place + size != start + found:
        raise _broken("its directory is not where it should be")
    return count, size, place


def _entry(name: bytes, fields: tuple[int, ...]) -> _Entry:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise TreeError(f"the name {name[:100]!r} is not UTF-8") from None
    made_by, flags, method, checksum = fields[1], fields[3], fields[4], fields[7]
    packed, size, attributes, place = fields[8], fields[9], fields[15], fields[16]
    if flags & _ENCRYPTED:
        raise TreeError(f"{text[:100]} is encrypted")
    if method not in {_STORED, _DEFLATED}:
        raise TreeError(f"{text[:100]} is compressed in a way that is not taken ({method})")
    if _MOST_32 in {packed, size, place}:
        raise TreeTooLargeError(f"{text[:100]} is too large for a zip archive")
    mode = (attributes >> 16) & _FORMAT_MASK if made_by >> 8 == _UNIX else 0
    if mode not in {0, _FILE_MODE, _FOLDER_MODE}:
        raise TreeError(f"{text[:100]!r} is a link or a device; only files and folders are taken")
    folder = text.endswith("/")
    if (mode == _FOLDER_MODE) != folder and mode:
        raise TreeError(f"{text[:100]!r} is both a file and a folder")
    if folder and size:
        raise TreeError(f"{text[:100]} is a folder with content")
    return _Entry(
        name=text,
        method=method,
        checksum=checksum,
        packed=packed,
        size=size,
        place=place,
        folder=folder,
    )


def _start(file: BinaryIO, entry: _Entry) -> int:
    """Where the bytes of a file begin; what is said there must be the same as in the directory."""
    file.seek(entry.place)
    fields = _LOCAL.unpack(_exactly(file, _LOCAL.size))
    name = _exactly(file, fields[9])
    if fields[0] != b"PK\x03\x04" or fields[3] != entry.method or name != entry.name.encode():
        raise _broken(f"{entry.name[:100]!r} has two different headers")
    return entry.place + _LOCAL.size + len(name) + int(fields[10])


def _content(file: BinaryIO, entry: _Entry, start: int, account: Account) -> Iterator[bytes]:
    file.seek(start)
    checksum = size = 0
    stream = _stored(file, entry) if entry.method == _STORED else _inflated(file, entry)
    for part in stream:
        account.give(len(part))
        size += len(part)
        checksum = zlib.crc32(part, checksum)
        if size > entry.size:
            break
        yield part
    if size != entry.size or checksum != entry.checksum:
        raise _broken(f"{entry.name[:100]} is not what its header says")


def _stored(file: BinaryIO, entry: _Entry) -> Iterator[bytes]:
    left = entry.packed
    while left:
        part = _exactly(file, min(left, _CHUNK))
        left -= len(part)
        yield part


def _inflated(file: BinaryIO, entry: _Entry) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for packed in _stored(file, entry):
            yield inflater.decompress(packed, _CHUNK)
            while inflater.unconsumed_tail:
                yield inflater.decompress(inflater.unconsumed_tail, _CHUNK)
        while not inflater.eof and (part := inflater.decompress(b"", _CHUNK)):
            yield part
    except zlib.error as error:
        raise _broken(f"{entry.name[:100]}: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise _broken(f"{entry.name[:100]} breaks off, or goes on after its end")


def _exactly(file: BinaryIO, size: int) -> bytes:
    part = file.read(size)
    if len(part) != size:
        raise _broken("it breaks off")
    return part


def _broken(why: str) -> TreeError:
    return TreeError(f"it is no intact zip archive: {why}")
