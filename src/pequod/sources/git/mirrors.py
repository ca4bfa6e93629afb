"""All mirrors of this process: made when needed, thrown away when damaged, old or too many."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from pequod.sources.credentials import Credentials
from pequod.sources.git.command import Call, Git
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.verdicts import BrokenError
from pequod.sources.limits import MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorCapacity:
    """How much is kept."""

    mirrors: int = 128
    total_bytes: int = 8192 * MEBIBYTE
    packs: int = 64
    """Fetches into one mirror before it is made anew, since it only ever grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorKey:
    """What two users of one mirror have in common."""

    url: str
    holder: str
    """Differs with the credentials: nobody reads what only another may fetch."""
    leave_out: str
    """What is never fetched: whatever else is not there is missing."""
    algorithm: str = "sha1"


def holder(credentials: Credentials) -> str:
    """A name for whoever holds these credentials."""
    text = credentials.fingerprint or repr(astuple(credentials))
    return hashlib.sha256(text.encode()).hexdigest()


class Mirrors:
    """The folder with the mirrors."""

    def __init__(self, root: Path, git: Git, capacity: MirrorCapacity | None = None) -> None:
        self._root = root
        self._git = git
        self._capacity = capacity or MirrorCapacity()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def holding(self, key: MirrorKey) -> AsyncIterator[Mirror]:
        """Use a mirror, alone; one that turns out to be damaged does not come again."""
        name = hashlib.sha256(repr(astuple(key)).encode()).hexdigest()[:40]
        folder = self._root / name
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            try:
                yield await self._opened(folder, key)
            except BrokenError:
                await asyncio.to_thread(_remove, folder)
                raise
            finally:
                with suppress(FileNotFoundError):
                    os.utime(folder)
        await self._evict()

    def reading(self, folder: Path) -> Mirror:
        """A repository that is not ours, of which nothing is changed or kept."""
        return Mirror(folder, self._git, fresh=False)

    async def _opened(self, folder: Path, key: MirrorKey) -> Mirror:
        fresh = not await asyncio.to_thread(self._usable, folder)
        if fresh:
            await self._make(folder, key)
        return Mirror(folder, self._git, fresh=fresh)

    async def _make(self, folder: Path, key: MirrorKey) -> None:
        """A repository is whole or not there: it gets its name when it is ready."""
        draft = folder.with_suffix(".new")
        _remove(draft)
        options = ("--quiet", "--bare", "--template=", f"--object-format={key.algorithm}")
        await self._git.run(Call(arguments=("init", *options, "--", str(draft))))
        draft.rename(folder)

    def _usable(self, folder: Path) -> bool:
        packs = folder / "objects" / "pack"
        if sum(1 for _ in packs.glob("*.pack")) >= self._capacity.packs:
            _remove(folder)
        return folder.exists()

    async def _evict(self) -> None:
        """Remove the longest unused ones, as long as there is too much; none that is in use."""
        for folder in await asyncio.to_thread(self._too_many):
            lock = self._locks.setdefault(folder.name, asyncio.Lock())
            if not lock.locked():
                async with lock:
                    await asyncio.to_thread(_remove, folder)

    def _too_many(self) -> list[Path]:
        total = 0
        found = []
        kept = ((_last_use(one), one) for one in self._root.iterdir() if not one.suffix)
        for number, (_, folder) in enumerate(sorted(kept, reverse=True)):
            total += _size(folder)
            if number >= self._capacity.mirrors or total > self._capacity.total_bytes:
                found.append(folder)
        return found


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    with suppress(FileNotFoundError):
        for one in (folder / "objects" / "pack").iterdir():
            total += one.stat().st_size
    return total


def _remove(folder: Path) -> None:
    """Take a folder out of its place by a rename, so that nobody finds half of it."""
    grave = folder.with_suffix(".gone")
    shutil.rmtree(grave, ignore_errors=True)
    with suppress(FileNotFoundError):
        folder.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)
