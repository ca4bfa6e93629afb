"""Folders become archives, the same bytes for the same files: nothing of time, owner or machine."""

import gzip
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pequod.sources.tree import Entry, TreeError, entries

MODULE_FILE = "cue.mod/module.cue"
_LEFT_OUT = frozenset({".git", ".jj", ".hg", ".svn", ".bzr", ".DS_Store"})
_LOCAL_MODULE_FILE = "cue.mod/local-module.cue"
_NOT_FOR_CUE = frozenset("\"'*<>?`|:\\")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_CHUNK = 2**20
_UNIX = 3


def pack(folder: Path, into: Path, *, prefix: str = "") -> None:
    """Write a gzipped tar archive of a folder, below a prefix; raises TreeError."""
    top = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    with (
        into.open("xb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in _wanted(folder):
            header = tarfile.TarInfo(top + entry.path)
            if entry.kind == "folder":
                header.type, header.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(header)
                continue
            with (folder / entry.path).open("rb") as content:
                header.size = os.fstat(content.fileno()).st_size
                archive.addfile(header, content)


def pack_module(folder: Path, into: Path) -> None:
    """Write a zip archive of a CUE module, as CUE wants it; raises TreeError."""
    if not (folder / MODULE_FILE).is_file():
        raise TreeError(f"there is no {MODULE_FILE}")
    with into.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in _of_module(folder):
            header = zipfile.ZipInfo(entry.path, _EPOCH)
            header.create_system, header.external_attr = _UNIX, 0o100644 << 16
            header.compress_type, header.file_size = zipfile.ZIP_DEFLATED, entry.size
            with (folder / entry.path).open("rb") as content, archive.open(header, "w") as packed:
                while part := content.read(_CHUNK):
                    packed.write(part)


def _of_module(folder: Path) -> Iterator[Entry]:
    """The files of a module, without other modules below it and what only its author needs."""
    for entry in _wanted(folder):
        if entry.kind != "file" or entry.path == _LOCAL_MODULE_FILE:
            continue
        above = list(Path(entry.path).parents)[:-1]
        if any((folder / one / "cue.mod").exists() for one in above if one.name != "cue.mod"):
            continue
        if _NOT_FOR_CUE & set(entry.path):
            raise TreeError(f"{entry.path} has characters that a CUE module may not have")
        yield entry


def _wanted(folder: Path) -> Iterator[Entry]:
    for entry in entries(folder):
        if _LEFT_OUT & set(entry.path.split("/")):
            continue
        if entry.kind == "link":
            raise TreeError(f"{entry.path} is a link; only files and folders are packed")
        yield entry
