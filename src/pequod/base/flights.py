"""One answer for all who ask the same at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from pequod.base import tasks

Answer = TypeVar("Answer")


class _Flight(Generic[Answer]):
    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task = task
        self.waiting = 0


class Flights(Generic[Answer]):
    """Work that is shared: it ends when it is done, or when nobody waits for it any more."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[Answer]] = {}

    async def share(self, key: Hashable, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do something, or wait for the one who already does it."""
        flight = self._flights.get(key) or self._begin(key, work)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                await self._leave(key, flight)

    def _begin(self, key: Hashable, work: Callable[[], Awaitable[Answer]]) -> _Flight[Answer]:
        async def fly() -> Answer:
            return await work()

        flight = _Flight(asyncio.create_task(fly(), name=f"flight {key!r}"))
        self._flights[key] = flight
        # Whoever comes after the end asks anew, even while the others have not left yet.
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: Hashable, flight: _Flight[Answer]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _leave(self, key: Hashable, flight: _Flight[Answer]) -> None:
        self._forget(key, flight)
        if not flight.task.done():
            await tasks.end(flight.task)
