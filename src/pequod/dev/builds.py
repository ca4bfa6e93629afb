"""Programs that are built once and kept outside the work tree.

A build is put into the cache by one rename, so one that was cut short is never taken for a whole
one, and it is checked before it is used.
"""

import asyncio
import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pequod.dev.failure import DevError

SPACE_FOR_A_BUILD = 6 * 1024**3
"""What a cold build needs at its peak: module sources, Go's own build cache, the programs."""


@dataclass(frozen=True)
class Progress:
    """How far a build has come, for whoever shows it."""

    what: str
    done: int = 0
    total: int = 0
    detail: str = ""


Report = Callable[[Progress], None]


Make = Callable[[Path], Awaitable[None]]
"""Puts programs into an empty folder."""


class Manifest(msgspec.Struct, frozen=True):
    """What a finished build consists of: the SHA-256 of each program."""

    programs: dict[str, str]


_MANIFEST = "manifest.json"


async def ensure_made(folder: Path, programs: Iterable[str], *, make: Make, report: Report) -> Path:
    """A folder in the cache with programs: as it is if it is sound, made otherwise."""
    if await asyncio.to_thread(_is_sound, folder):
        return folder
    _require_writable(folder)
    async with _build_lock(folder, report):
        if not await asyncio.to_thread(_is_sound, folder):
            await _make(folder, programs, make)
    return folder


async def _make(folder: Path, programs: Iterable[str], make: Make) -> None:
    workshop = await asyncio.to_thread(_empty_workshop, folder)
    try:
        await make(workshop)
        await asyncio.to_thread(_publish, workshop, folder, programs)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _is_sound(folder: Path) -> bool:
    """Whether a build is complete and unharmed."""
    try:
        manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=Manifest)
        return all(_sha256(folder / name) == wanted for name, wanted in manifest.programs.items())
    except (OSError, msgspec.DecodeError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _require_writable(folder: Path) -> None:
    cache, name = folder.parent, folder.name
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError as error:
        raise DevError(
            f"{name} is not in the cache and {cache} cannot be written: {error.strerror}",
            next_step="Set PEQUOD_CACHE_DIR to a folder that you may write to.",
        ) from error
    free = shutil.disk_usage(cache).free
    if free < SPACE_FOR_A_BUILD:
        raise DevError(
            f"building {name} needs about {SPACE_FOR_A_BUILD // 1024**3} GiB and {cache} "
            f"has {free / 1024**3:.1f} GiB free",
            next_step="Free some space, or set PEQUOD_CACHE_DIR to a folder on a larger disk.",
        )


@asynccontextmanager
async def _build_lock(folder: Path, report: Report) -> AsyncIterator[None]:
    """One build of a module at a time on this machine; the others wait for its result."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        while not _locked(lock.fileno()):
            report(Progress(f"Waiting for another build of {folder.name}"))
            await asyncio.sleep(0.5)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _empty_workshop(folder: Path) -> Path:
    """A folder beside the final one, once everything that failed or rotted there is gone."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(leftover)
    shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))


def _publish(workshop: Path, folder: Path, programs: Iterable[str]) -> None:
    """Seal a finished build and put it into its place."""
    digests = {program: _sha256(workshop / program) for program in programs}
    (workshop / _MANIFEST).write_bytes(msgspec.json.encode(Manifest(digests)))
    workshop.chmod(0o755)
    workshop.rename(folder)
