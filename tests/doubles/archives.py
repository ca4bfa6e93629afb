"""Archives that no honest program would write."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of a tar archive; fields are those of TarInfo."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for field, value in fields.items():
        setattr(header, field, value)
    return header, content


def tar(
    *members: tuple[tarfile.TarInfo, bytes],
    form: Literal[0, 1, 2] = tarfile.PAX_FORMAT,
    end: bytes = b"\0" * 1024,
) -> bytes:
    """A tar archive of entries, whatever they are."""
    out = bytearray()
    for header, content in members:
        out += header.tobuf(form, errors="surrogateescape")
        out += content + b"\0" * (-len(content) % 512)
    return bytes(out) + end


def tar_of(files: Mapping[str, bytes]) -> bytes:
    return tar(*(member(name, content) for name, content in files.items()))


def targz_of(files: Mapping[str, bytes]) -> bytes:
    return gzip.compress(tar_of(files), mtime=0)


def zip_of(files: Mapping[str, bytes] | Iterable[tuple[zipfile.ZipInfo | str, bytes]]) -> bytes:
    """A zip archive, made by Python."""
    out = io.BytesIO()
    pairs = files.items() if isinstance(files, Mapping) else files
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in pairs:
            archive.writestr(name, content)
    return out.getvalue()


def zip_bomb(copies: int, size: int) -> bytes:
    """Many entries that all are the same bytes: the files overlap."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = b"\0" * size
    packed = compressor.compress(content) + compressor.flush()
    sums = (zlib.crc32(content), len(packed), size)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, *sums, 1, 0) + b"x" + packed
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, *sums, 1, 0, 0, 0, 0, 0, 0
    )
    directory = (entry + b"x") * copies
    end = struct.pack(
        "<4s4H2IH", b"PK\x05\x06", 0, 0, copies, copies, len(directory), len(local), 0
    )
    return local + directory + end


def files_of(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
