"""Ending tasks so that they have really ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until each has ended; what they end with is nobody's concern."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Background:
    """Tasks that nobody waits for, until their owner ends."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        """Do something in the background."""
        return self.adopt(asyncio.create_task(work, name=name))

    def adopt(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Look after a task that somebody else has started."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel what is still going on, and wait for its end."""
        await end(*self._tasks)
