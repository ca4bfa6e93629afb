"""Trees by their digest, on disk, shared by everybody.

A tree is filled under a temporary name, checked, and put into its place by one rename: what is
there is whole. It is verified by its digest when this process uses it for the first time. Trees
that nobody uses are removed, the longest unused first, when there are too many, too large or too
old ones; only while no other process has the store open.
"""

import asyncio
import errno
import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog
from prometheus_client import Counter as Count
from prometheus_client import Gauge

from pequod.base.threads import finished
from pequod.sources import tree
from pequod.sources.limits import MEBIBYTE, Limits

_log = structlog.get_logger()
_size = Gauge("pequod_source_cache_bytes", "Size of the trees in the artifact cache.")
_trees = Gauge("pequod_source_cache_trees", "Number of trees in the artifact cache.")
_evicted = Count("pequod_source_cache_evictions_total", "Trees removed from the artifact cache.")
_rotten = Count("pequod_source_cache_rotten_total", "Trees that no longer had their digest.")

Fill = Callable[[Path], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much is kept."""

    total_bytes: int = 4096 * MEBIBYTE
    trees: int = 2000
    unused_seconds: float = 7 * 24 * 3600.0


class Store:
    """The folder with the trees."""

    def __init__(
        self, root: Path, *, limits: Limits | None = None, capacity: Capacity | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._capacity = capacity or Capacity()
        self._root = root
        self._trees = root / "trees"
        self._incoming = root / "incoming"
        self._verified: set[str] = set()
        self._users: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._turn = asyncio.Lock()
        self._changing = threading.Lock()
        self._lock: IO[str] | None = None

    async def open(self) -> None:
        """Make the folder, and remove what an earlier process left unfinished."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._trees.mkdir(exist_ok=True)
        self._incoming.mkdir(exist_ok=True)
        self._lock = (self._root / "lock").open("w")
        with self._conversion(fcntl.LOCK_EX):
            if self._alone():
                for leftover in self._incoming.iterdir():
                    _remove(leftover)
            self._share()
        self._measure()

    def close(self) -> None:
        """Let others evict."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def usable(self) -> str:
        """Say that the store can be written to; raises OSError when it cannot."""
        with tempfile.TemporaryFile(dir=self._incoming):
            return f"writable, {sum(1 for _ in self._trees.iterdir())} trees"

    async def add(self, fill: Fill) -> str:
        """Let a tree be filled, and keep it; yields its digest.

        Raises TreeError when it may not be kept.
        """
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._incoming))
        try:
            await fill(folder)
            digest = await finished(self._admit, folder)
        finally:
            await finished(_remove, folder)
        await self.evict(keep=digest)
        return digest

    def _admit(self, folder: Path) -> str:
        tree.check(folder, self.limits)
        digest = tree.digest(folder)
        with self._changing:
            place = self.place(digest)
            if digest not in self._verified and _is_another(place, digest):
                _rotten.inc()
                self._discard(digest)
            if not place.exists():
                tree.seal(folder)
                self._settle(folder, place)
            os.utime(place)
            self._verified.add(digest)
        return digest

    def _settle(self, folder: Path, place: Path) -> None:
        try:
            folder.rename(place)
        except OSError as error:
            # Another process was faster with the same tree.
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise
        else:
            place.chmod(0o555)

    async def find(self, digest: str) -> Path | None:
        """The tree of a digest, verified; None when it is not, or no longer, there."""
        return await asyncio.to_thread(self._find, digest)

    def _find(self, digest: str) -> Path | None:
        place = self.place(digest)
        try:
            if digest not in self._verified:
                if tree.digest(place) != digest:
                    _rotten.inc()
                    self._discard(digest)
                    return None
                self._verified.add(digest)
            os.utime(place)
        except (FileNotFoundError, tree.TreeError):
            self._verified.discard(digest)
            return None
        return place

    @asynccontextmanager
    async def using(self, digest: str) -> AsyncIterator[Path | None]:
        """The same, and it stays for the length of the block."""
        async with self._turn:
            # From here on, whoever evicts sees that it is used.
            self._users[digest] += 1
        try:
            yield await self.find(digest)
        finally:
            self._users[digest] -= 1
            self._users += Counter()

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator[Path]:
        """A folder for what is not a tree yet; gone after the block, or at the next start."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._incoming))
        try:
            yield folder
        finally:
            await finished(_remove, folder)

    async def evict(self, *, keep: str = "") -> None:
        """Remove what is too much; one at a time."""
        async with self._turn:
            await finished(self._evict, keep)

    def _evict(self, keep: str) -> None:
        with suppress(BlockingIOError), self._conversion(fcntl.LOCK_EX | fcntl.LOCK_NB):
            try:
                if self._alone():
                    self._remove_unused(keep)
            finally:
                self._share()

    def _remove_unused(self, keep: str) -> None:
        now = time.time()
        kept = self._by_last_use()
        total = sum(size for _, _, size in kept)
        number = len(kept)
        for place, used, size in kept:
            old = now - used > self._capacity.unused_seconds
            full = total > self._capacity.total_bytes or number > self._capacity.trees
            digest = f"sha256:{place.name}"
            if digest != keep and (old or full) and self._removed(digest, used):
                _evicted.inc()
                total, number = total - size, number - 1
        _size.set(total)
        _trees.set(number)

    def _removed(self, digest: str, used: float) -> bool:
        """Remove a tree, unless somebody uses it, or has asked for it meanwhile."""
        with self._changing, suppress(FileNotFoundError):
            if not self._users[digest] and self.place(digest).stat().st_mtime == used:
                self._discard(digest)
                return True
        return False

    def _measure(self) -> None:
        kept = self._by_last_use()
        _size.set(sum(size for _, _, size in kept))
        _trees.set(len(kept))

    def _by_last_use(self) -> list[tuple[Path, float, int]]:
        found = []
        for place in self._trees.iterdir():
            # Another process may find it rotten, and take it out, at any time.
            with suppress(FileNotFoundError):
                found.append((place, place.stat().st_mtime, self._size_of(place)))
        return sorted(found, key=lambda one: one[1])

    def _size_of(self, place: Path) -> int:
        if place.name not in self._sizes:
            self._sizes[place.name] = sum(entry.size for entry in tree.entries(place))
        return self._sizes[place.name]

    def place(self, digest: str) -> Path:
        """Where the tree of a digest is, if it is there."""
        algorithm, _, hexadecimal = digest.partition(":")
        assert algorithm == "sha256", digest
        assert hexadecimal.isalnum(), digest
        return self._trees / hexadecimal

    def _discard(self, digest: str) -> None:
        """Take a tree out by a rename, then remove it: nobody ever finds half of one."""
        self._verified.discard(digest)
        grave = Path(tempfile.mkdtemp(dir=self._incoming))
        with suppress(FileNotFoundError):
            self.place(digest).rename(grave / "tree")
        _remove(grave)

    @contextmanager
    def _conversion(self, how: int) -> Iterator[None]:
        """Let no other process change its lock meanwhile: a lock is lost while it is converted."""
        with (self._root / "conversion").open("w") as file:
            fcntl.flock(file, how)
            yield

    def _alone(self) -> bool:
        assert self._lock is not None, "the store is open"
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _share(self) -> None:
        assert self._lock is not None, "the store is open"
        fcntl.flock(self._lock, fcntl.LOCK_SH)


def _is_another(place: Path, digest: str) -> bool:
    """Whether something else is where a tree should be."""
    try:
        return tree.digest(place) != digest
    except FileNotFoundError:
        return False


def _remove(folder: Path) -> None:
    """Remove a folder, although everything in it may be read-only."""
    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(path).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
