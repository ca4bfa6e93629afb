"""Which object is next: each key at most once in line, and never with two workers.

A key that is added while it is being worked on is worked on again afterwards. Keys wait in three
lines: what is on its way and can go on, what somebody changed, and last what is looked at again by
the clock. Of many at once some are done early, since what was begun goes before what was not; but
not always, so that nothing waits for ever. Failures of a key make it wait longer each time; nobody
else waits with it.
"""

import asyncio
import time
from collections import deque
from enum import IntEnum
from typing import Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from pequod.base.backoff import Backoff

K = TypeVar("K")

_BUCKETS = (0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60, 300)
_depth = Gauge("workqueue_depth", "Keys in line.", ("name",))
_adds = Counter("workqueue_adds_total", "Keys put in line.", ("name",))
_retries = Counter("workqueue_retries_total", "Keys put in line after a failure.", ("name",))
_waited = Histogram(
    "workqueue_queue_duration_seconds", "How long keys were in line.", ("name",), buckets=_BUCKETS
)
_worked = Histogram(
    "workqueue_work_duration_seconds", "How long work took.", ("name",), buckets=_BUCKETS
)
_unfinished = Gauge("workqueue_unfinished_work_seconds", "Work in progress, summed.", ("name",))
_longest = Gauge(
    "workqueue_longest_running_processor_seconds", "The oldest work in progress.", ("name",)
)


class Priority(IntEnum):
    """Who goes first."""

    GOING = 0
    """What it was waiting for has happened, and it can go on."""
    CHANGE = 1
    """Somebody changed something and may be waiting for it."""
    RESYNC = 2
    """The clock says that it is time to look again."""


TURNS = {Priority.RESYNC: 16, Priority.CHANGE: 4}
"""Of so many keys one is from a slower line, however many are in the faster ones."""


class Queue(Generic[K]):
    """The line of one controller; belongs to one event loop."""

    def __init__(self, name: str, backoff: Backoff | None = None) -> None:
        self._name = name
        self._backoff = backoff or Backoff()
        self._lines: dict[Priority, deque[K]] = {priority: deque() for priority in Priority}
        self._turn = 0
        self._waiting: dict[K, tuple[Priority, float]] = {}
        self._working: dict[K, float] = {}
        self._again: dict[K, Priority] = {}
        self._delayed: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        self._wakers: set[asyncio.Future[None]] = set()
        self._adds = _adds.labels(name)
        _depth.labels(name).set_function(lambda: len(self._waiting))
        _unfinished.labels(name).set_function(lambda: sum(self._running()))
        _longest.labels(name).set_function(lambda: max(self._running(), default=0.0))

    def add(self, key: K, priority: Priority = Priority.CHANGE) -> None:
        """Put a key in line now."""
        self._cancel_delay(key)
        if key in self._working:
            self._again[key] = min(priority, self._again.get(key, priority))
            return
        known = self._waiting.get(key)
        if known is not None and known[0] <= priority:
            return
        since = known[1] if known is not None else time.monotonic()
        self._waiting[key] = (priority, since)
        self._lines[priority].append(key)
        self._adds.inc()
        self._wake()

    def add_after(self, key: K, delay: float, priority: Priority = Priority.RESYNC) -> None:
        """Put a key in line later, unless it is there earlier for another reason."""
        if delay <= 0:
            self.add(key, priority)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay
        known = self._delayed.get(key)
        if known is not None and known[0] <= due:
            return
        self._cancel_delay(key)
        self._delayed[key] = (due, loop.call_at(due, self.add, key, priority))

    def retry(self, key: K) -> float:
        """Put a key in line after a failure; returns the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        _retries.labels(self._name).inc()
        delay = self._backoff.delay(failures)
        self.add_after(key, delay)
        return delay

    def failures(self, key: K) -> int:
        """How often a key has failed in a row."""
        return self._failures.get(key, 0)

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def forget(self, key: K) -> None:
        """Forget a key altogether: what it stood for is gone."""
        self._failures.pop(key, None)
        self._cancel_delay(key)

    async def get(self) -> K:
        """The next key, which is the caller's alone until `done`."""
        while not self._waiting:
            waker = asyncio.get_running_loop().create_future()
            self._wakers.add(waker)
            try:
                await waker
            except asyncio.CancelledError:
                if waker.done() and not waker.cancelled():
                    # The key that we were woken for is for somebody else now.
                    self._wake()
                raise
            finally:
                self._wakers.discard(waker)
        key = self._next()
        _, since = self._waiting.pop(key)
        _waited.labels(self._name).observe(time.monotonic() - since)
        self._working[key] = time.monotonic()
        return key

    def _next(self) -> K:
        """Whose turn it is; there is somebody."""
        self._turn += 1
        slower = [line for line, turns in TURNS.items() if not self._turn % turns]
        lines = (self._first(priority) for priority in (*slower, *Priority))
        return next(line for line in lines if line).popleft()

    def _first(self, priority: Priority) -> deque[K]:
        """A line from whoever is next in it: keys that moved to a faster line are dropped."""
        line = self._lines[priority]
        while line and self._waiting.get(line[0], (None,))[0] is not priority:
            line.popleft()
        return line

    def done(self, key: K) -> None:
        """Give a key back."""
        started = self._working.pop(key)
        _worked.labels(self._name).observe(time.monotonic() - started)
        if key in self._again:
            self.add(key, self._again.pop(key))

    def clear(self) -> None:
        """Forget everything: somebody else does the work from now on."""
        for _, timer in self._delayed.values():
            timer.cancel()
        for part in (self._delayed, self._waiting, self._again, self._failures):
            part.clear()
        for line in self._lines.values():
            line.clear()

    @property
    def working(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    def __len__(self) -> int:
        return len(self._waiting)

    def _wake(self) -> None:
        for waker in self._wakers:
            if not waker.done():
                waker.set_result(None)
                self._wakers.discard(waker)
                return

    def _cancel_delay(self, key: K) -> None:
        known = self._delayed.pop(key, None)
        if known is not None:
            known[1].cancel()

    def _running(self) -> list[float]:
        now = time.monotonic()
        return [now - started for started in self._working.values()]
