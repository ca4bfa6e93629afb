"""Everything that runs, in one group: started together, ended in order.

The caches of every replica are warm; only the one that leads reconciles. Losing the lead ends the
workers at once and goes back to waiting; being told to stop lets passes come to their end, gives
the Lease back, and then ends everything else.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog

from pequod.base.durations import words
from pequod.base.tasks import end
from pequod.kube.caches import Caches
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from pequod.runtime.health import Check, UnhealthyError
from pequod.runtime.leader import Leadership

GRACE = 10.0
"""Seconds that passes have to come to their end."""
STUCK = 180.0
"""Seconds after which a watch that does nothing is a reason for a restart."""

_log = structlog.get_logger()


class Manager:
    """Runs controllers while we lead, and everything that they need all the time."""

    def __init__(
        self,
        controllers: Sequence[Controller[Any]],
        *,
        caches: Caches,
        recorder: Recorder,
        leadership: Leadership | None,
    ) -> None:
        self._controllers = controllers
        self._caches = caches
        self._recorder = recorder
        self._leadership = leadership

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop."""
        async with asyncio.TaskGroup() as group:
            recording = group.create_task(self._recorder.run(), name="events")
            leading = group.create_task(self._lead(stop), name="lead")
            await stop.wait()
            _log.info("stopping")
            await leading
            recording.cancel()

    async def _lead(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not await self._acquired(stop):
                return
            await self._reconcile_while_leading(stop)

    async def _acquired(self, stop: asyncio.Event) -> bool:
        """Wait until we lead, or are told to stop."""
        if self._leadership is None:
            return True
        acquiring = asyncio.create_task(self._leadership.acquire(), name="acquire lease")
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((acquiring, stopping), return_when=asyncio.FIRST_COMPLETED)
            if acquiring.done():
                acquiring.result()
            return acquiring.done()
        finally:
            await end(acquiring, stopping)

    async def _reconcile_while_leading(self, stop: asyncio.Event) -> None:
        running = [
            asyncio.create_task(controller.run(), name=controller.name)
            for controller in self._controllers
        ]
        stopping = asyncio.create_task(stop.wait(), name="stop")
        keeping = asyncio.create_task(self._keep(), name="keep lease")
        try:
            await asyncio.wait((*running, stopping, keeping), return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                if task.done():
                    # A controller never ends by itself: that is a bug, and the end of us all.
                    error = None if task.cancelled() else task.exception()
                    raise RuntimeError(f"the controller {task.get_name()} ended") from error
            if not keeping.done():
                await self._drain()
        finally:
            await end(*running)
            await end(keeping, stopping)
            if self._leadership is not None:
                await self._leadership.release()

    async def _drain(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.drain(GRACE))

    async def _keep(self) -> None:
        """Return when we lead no longer; without an election, never."""
        if self._leadership is not None:
            await self._leadership.keep()
        else:
            await asyncio.Event().wait()

    def live(self) -> dict[str, Check]:
        """What a restart could mend."""

        async def watches() -> str:
            stuck = self._caches.stuck(STUCK)
            if stuck:
                raise UnhealthyError(f"stuck: {', '.join(sorted(stuck))}")
            return f"ok, the quietest was heard {words(self._caches.age())} ago"

        return {"watches": watches}

    def ready(self) -> dict[str, Check]:
        """What is missing before objects can be reconciled."""

        async def caches() -> str:
            missing = [str(one.kind) for one in self._controllers if not one.synced]
            if missing:
                raise UnhealthyError(f"not listed yet, for {', '.join(sorted(missing))}")
            return "ok"

        return {"caches": caches}
