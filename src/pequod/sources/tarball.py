"""Tar archives, read header by header: ustar, and what GNU and POSIX say about long names.

Everything else that a tar archive can hold is refused: links, devices, holes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pequod.sources.inflating import Reader
from pequod.sources.tree import TreeError, TreeTooLargeError
from pequod.sources.unpacking import Target

_BLOCK = 512
_CHUNK = 2**20
_LONGEST_EXTENSION = 2**16
_FILES = frozenset({b"0", b"\0"})
_FOLDER = b"5"
_LONG_NAME = b"L"
_LONG_LINK = b"K"
_EXTENDED = b"x"
_GLOBAL = b"g"
_OTHERS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a fifo",
    b"S": "a file with holes",
}


@dataclass(frozen=True, slots=True)
class _Header:
    name: bytes
    size: int
    kind: bytes


@dataclass(slots=True)
class _Extension:
    """What the headers before a header say about it."""

    name: bytes | None = None
    size: int | None = None


def unpack(stream: Reader, target: Target) -> None:
    """Write the files and folders of an archive."""
    extension = _Extension()
    while (header := _header(stream)) is not None:
        if header.kind in {_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL}:
            _extend(extension, header, _extension_text(stream, header))
            continue
        name = header.name if extension.name is None else extension.name
        size = header.size if extension.size is None else extension.size
        extension = _Extension()
        _entry(stream, target, _Header(name, size, header.kind))
    _check_end(stream)


def _entry(stream: Reader, target: Target, header: _Header) -> None:
    try:
        name = header.name.decode()
    except UnicodeDecodeError:
        raise TreeError(f"the name {header.name[:100]!r} is not UTF-8") from None
    if header.kind == _FOLDER or (header.kind in _FILES and name.endswith("/")):
        if header.size:
            raise TreeError(f"{name[:100]} is a folder with content")
        target.add_folder(name)
    elif header.kind in _FILES:
        if header.size > target.limits.file_bytes:
            raise TreeTooLargeError(f"{name[:100]} is larger than {target.limits.file_bytes} bytes")
        target.add_file(name, _content(stream, header.size))
        _exactly(stream, -header.size % _BLOCK)
    else:
        what = _OTHERS.get(header.kind, f"an entry of the kind {header.kind!r}")
        raise TreeError(f"{name[:100]!r} is {what}; only files and folders are taken")


def _header(stream: Reader) -> _Header | None:
    block = _exactly(stream, _BLOCK)
    if not any(block):
        return None
    if _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise TreeError("it is no intact tar archive: a checksum is wrong")
    name = _text(block[0:100])
    if block[257:263] == b"ustar\0" and block[345] != 0:
        name = _text(block[345:500]) + b"/" + name
    return _Header(name, _number(block[124:136]), block[156:157])


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """Octal, or binary with the highest bit set as GNU writes what is too large for that."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:])
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise TreeError("it is no intact tar archive: a number is not one")
    return int(digits or b"0", 8)


def _extension_text(stream: Reader, header: _Header) -> bytes:
    if header.size > _LONGEST_EXTENSION:
        raise TreeTooLargeError(f"a header has more than {_LONGEST_EXTENSION} bytes")
    text = _exactly(stream, header.size)
    _exactly(stream, -header.size % _BLOCK)
    return text


def _extend(extension: _Extension, header: _Header, text: bytes) -> None:
    if header.kind == _LONG_NAME:
        extension.name = _text(text)
        return
    if header.kind == _LONG_LINK:
        return
    for key, value in _records(text):
        if key.startswith(b"GNU.sparse"):
            raise TreeError("there is a file with holes; only files and folders are taken")
        if header.kind == _GLOBAL and key in {b"path", b"size"}:
            raise TreeError("a header gives all files the same name or size")
        if key == b"path":
            extension.name = value
        elif key == b"size":
            extension.size = _decimal(value)


def _records(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The lines `LENGTH KEY=VALUE` of an extended header."""
    while text.strip(b"\0"):
        digits, space, _ = text[:20].partition(b" ")
        length = _decimal(digits)
        record, text = text[:length], text[length:]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not (space and equals and len(record) == length and record.endswith(b"\n")):
            raise TreeError("it is no intact tar archive: an extended header is wrong")
        yield key, value


def _decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 18:
        raise TreeError("it is no intact tar archive: a number is not one")
    return int(digits)


def _content(stream: Reader, size: int) -> Iterator[bytes]:
    left = size
    while left:
        part = stream.read(min(left, _CHUNK))
        if not part:
            raise TreeError("the archive breaks off")
        left -= len(part)
        yield part


def _exactly(stream: Reader, size: int) -> bytes:
    return b"".join(_content(stream, size))


def _check_end(stream: Reader) -> None:
    """Read on to the last byte, which also is where a checksum is; nothing may hide there."""
    while part := stream.read(_CHUNK):
        if any(part):
            raise TreeError("there is something after the end of the archive")
