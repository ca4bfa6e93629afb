"""Results by the digest of everything that they depend on.

Memory first, then disk; equal questions that are asked at the same time are asked once. What
holds a Secret never reaches the disk. That something took too much is remembered as well, for a
while: the same bomb is not lit again and again.
"""

import asyncio
import hashlib
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import Counter, Gauge

from pequod.base.flights import Flights
from pequod.evaluator.errors import EvaluationError, ModuleError, OverLimitError

_hits = Counter("pequod_cue_cache_hits_total", "Results that were known.", ["where"])
_misses = Counter("pequod_cue_cache_misses_total", "Results that had to be evaluated.")
_evictions = Counter("pequod_cue_cache_evictions_total", "Results that were forgotten.", ["where"])
_bytes = Gauge("pequod_cue_cache_size_bytes", "Size of the results that are known.", ["where"])

_CONFIDENTIAL = (b'"kind":"Secret', b'"violations":[{')
"""Results that hold these never reach the disk: Secrets, and what a person wrote by mistake."""
_CHECKSUM = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How much is remembered, and for how long."""

    memory_bytes: int = 64 * 2**20
    disk_bytes: int = 512 * 2**20
    seconds: float = 24 * 3600.0
    failure_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class _Known:
    value: bytes | EvaluationError
    until: float

    @property
    def size(self) -> int:
        return len(self.value) if isinstance(self.value, bytes) else 1024


Evaluate = Callable[[], Awaitable[bytes]]


class Results:
    """The results of one version of the evaluator."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        keeping: Keeping | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._keeping = keeping or Keeping()
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._size = 0
        self._on_disk = 0
        self._asked: Flights[bytes] = Flights()

    async def open(self) -> None:
        """Make the folder, and see what an earlier process has left there."""
        if self._folder is not None:
            await asyncio.to_thread(self._sweep, self._folder)

    async def get(self, key: str, evaluate: Evaluate) -> bytes:
        """What is known under a key, or what the evaluation yields."""
        found = self._recall(key)
        if found is not None:
            _hits.labels("memory").inc()
            return found
        return await self._asked.share(key, lambda: self._find(key, evaluate))

    async def _find(self, key: str, evaluate: Evaluate) -> bytes:
        if self._folder is not None:
            stored = await asyncio.to_thread(self._read, self._folder, key)
            if stored is not None:
                _hits.labels("disk").inc()
                self._remember(key, stored, self._keeping.seconds)
                return stored
        _misses.inc()
        try:
            value = await evaluate()
        except (OverLimitError, ModuleError) as error:
            self._remember(key, error, self._keeping.failure_seconds)
            raise
        self._remember(key, value, self._keeping.seconds)
        if self._folder is not None and not any(part in value for part in _CONFIDENTIAL):
            await asyncio.to_thread(self._write, self._folder, key, value)
        return value

    def _recall(self, key: str) -> bytes | None:
        known = self._known.get(key)
        if known is None:
            return None
        if known.until < self._clock():
            self._forget(key)
            return None
        self._known.move_to_end(key)
        if isinstance(known.value, EvaluationError):
            _hits.labels("memory").inc()
            raise known.value.with_traceback(None)
        return known.value

    def _remember(self, key: str, value: bytes | EvaluationError, seconds: float) -> None:
        if key in self._known:
            self._forget(key)
        known = _Known(value, self._clock() + seconds)
        if known.size > self._keeping.memory_bytes // 4:
            return
        self._known[key] = known
        self._size += known.size
        while self._size > self._keeping.memory_bytes:
            self._forget(next(iter(self._known)))
            _evictions.labels("memory").inc()
        _bytes.labels("memory").set(self._size)

    def _forget(self, key: str) -> None:
        self._size -= self._known.pop(key).size
        _bytes.labels("memory").set(self._size)

    def _read(self, folder: Path, key: str) -> bytes | None:
        path = folder / key[:2] / key
        try:
            if self._clock() - path.stat().st_mtime > self._keeping.seconds:
                return None
            content = path.read_bytes()
        except OSError:
            return None
        checksum, value = content[:_CHECKSUM], content[_CHECKSUM:]
        return value if hashlib.sha256(value).hexdigest().encode() == checksum else None

    def _write(self, folder: Path, key: str, value: bytes) -> None:
        """Best effort: a full disk costs time, not correctness."""
        path = folder / key[:2] / key
        temporary = path.with_name(f".{key}.{secrets.token_hex(4)}")
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                with os.fdopen(
                    os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb"
                ) as file:
                    file.write(hashlib.sha256(value).hexdigest().encode() + value)
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
        self._on_disk += len(value) + _CHECKSUM
        _bytes.labels("disk").set(self._on_disk)
        if self._on_disk > self._keeping.disk_bytes:
            self._sweep(folder)

    def _sweep(self, folder: Path) -> None:
        """Remove what is too old, and the oldest of what is too much; best effort as well."""
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = []
        for path in folder.glob("*/*"):
            with suppress(OSError):
                about = path.stat()
                found.append((about.st_mtime, about.st_size, path))
        total = sum(size for _, size, _ in found)
        for used, size, path in sorted(found):
            old = self._clock() - used > self._keeping.seconds
            if not old and total <= self._keeping.disk_bytes * 3 // 4:
                break
            with suppress(OSError):
                path.unlink()
            _evictions.labels("disk").inc()
            total -= size
        self._on_disk = total
        _bytes.labels("disk").set(total)
