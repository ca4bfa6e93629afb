"""Workers that wait for work, and nobody who takes all of them.

Each owner (a tenant) may keep half of the workers busy at the same time, and never all processors,
so that whoever sends bombs waits for himself. A worker that has to be killed is replaced before
anybody asks; one that nobody has asked for a while gives its memory back.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import structlog
from prometheus_client import Counter as Count
from prometheus_client import Gauge, Histogram

from pequod.base.tasks import Background
from pequod.evaluator.errors import BrokenError, EvaluationError
from pequod.evaluator.worker import Bounds, Worker, sweep_homes

_log = structlog.get_logger()
_duration = Histogram(
    "pequod_cue_eval_duration_seconds",
    "Time that a worker spent on a request.",
    ["verb"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_workers = Gauge("pequod_evaluator_workers", "Processes of the evaluator.")
_replaced = Count("pequod_evaluator_replaced_total", "Workers that were replaced.", ["why"])


class Pool:
    """A fixed number of places, filled with processes as they are needed."""

    def __init__(
        self, command: Sequence[str], *, size: int = 4, bounds: Bounds | None = None
    ) -> None:
        self.bounds = bounds or Bounds()
        self._command = tuple(command)
        self._all: set[Worker] = set()
        self._idle: dict[Worker, asyncio.TimerHandle] = {}
        """Those that wait for work, and what ends them if they wait for too long."""
        self._free = size
        self._share = max(1, min(size // 2, _processors() - 1))
        self._holding: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._background = Background()
        self._closed = False
        self._proven = False
        """Whether the last that is known of workers is that they answer."""

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those that there are now."""
        return tuple(self._all)

    async def start(self) -> None:
        """Have one worker ready; raises BrokenError when that is not possible."""
        await asyncio.to_thread(sweep_homes)
        self._rest(await self._fresh())

    async def close(self) -> None:
        """Kill every worker, whatever it does; there will be no others."""
        self._closed = True
        await self._background.close()
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        for worker in tuple(self._all):
            await self._kill(worker)

    async def usable(self) -> str:
        """Say that workers answer; one that was started only for that is not kept."""
        if not self._proven:
            needless = not self._all
            await self.ask("ping", {}, seconds=5.0)
            if needless and len(self._all) == len(self._idle) == 1:
                self._retire(next(iter(self._idle)))
        return f"{len(self._all)} workers"

    async def ask(
        self, verb: str, params: object, *, seconds: float | None = None, owner: str = ""
    ) -> msgspec.Raw:
        """The result of one request; waiting for a worker is not part of its time."""
        limit = self.bounds.seconds if seconds is None else min(seconds, self.bounds.seconds)
        async with self._place(owner), self._worker() as worker:
            with _duration.labels(verb).time():
                return await worker.ask(verb, params, seconds=limit)

    @asynccontextmanager
    async def _place(self, owner: str) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._free > 0 and (not owner or self._holding[owner] < self._share)
            )
            self._free -= 1
            self._holding[owner] += 1
        try:
            yield
        finally:
            async with self._changed:
                self._free += 1
                self._holding[owner] -= 1
                self._holding += Counter()
                self._changed.notify_all()

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[Worker]:
        worker = self._waiting() or await self._fresh()
        try:
            yield worker
        except BaseException as error:
            # Only after an answer is it known to be idle.
            if worker.answered and not isinstance(error, BrokenError):
                self._release(worker)
            else:
                self._proven = False
                self._replace(worker, type(error).__name__)
            raise
        self._proven = True
        self._release(worker)

    def _waiting(self) -> Worker | None:
        """One that waits for work; some may have been killed meanwhile by somebody else."""
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            if worker.alive:
                return worker
            self._background.start(self._kill(worker), name="kill an evaluator")
        return None

    def _release(self, worker: Worker) -> None:
        if worker.worn:
            self._replace(worker, "worn")
        else:
            self._rest(worker)

    def _rest(self, worker: Worker) -> None:
        """Have a worker wait for work, but not for ever."""
        loop = asyncio.get_running_loop()
        self._idle[worker] = loop.call_later(self.bounds.idle_seconds, self._retire, worker)

    def _retire(self, worker: Worker) -> None:
        """End a worker that has nothing to do."""
        self._idle.pop(worker).cancel()
        self._background.start(self._kill(worker), name="retire an evaluator")

    async def _fresh(self) -> Worker:
        try:
            worker = await Worker.start(self._command, self.bounds)
        except EvaluationError:
            self._proven = False
            raise
        self._all.add(worker)
        _workers.inc()
        if self._closed:
            await self._kill(worker)
            raise BrokenError("the evaluator has been closed")
        return worker

    def _replace(self, worker: Worker, why: str) -> None:
        if self._closed:
            return
        _replaced.labels(why).inc()
        self._background.start(self._kill(worker), name="kill an evaluator")
        self._background.start(self._refill(), name="start an evaluator")

    async def _refill(self) -> None:
        try:
            if not self._idle:
                worker = await self._fresh()
                # Whoever asked meanwhile has started another: there are never more than places.
                if len(self._idle) < self._free:
                    self._rest(worker)
                else:
                    await self._kill(worker)
        except EvaluationError as error:
            _log.error("evaluator not started", error=str(error))

    async def _kill(self, worker: Worker) -> None:
        await worker.kill()
        if worker in self._all:
            self._all.discard(worker)
            _workers.dec()


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
