"""Ending tasks so that they have really ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until each has ended; what they end with is nobody's concern."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


_ending: set[asyncio.Task[None]] = set()


def end_soon(work: Coroutine[Any, Any, None]) -> None:
    """Let something be closed in the background, by somebody who cannot wait for it."""
    task = asyncio.get_running_loop().create_task(work)
    _ending.add(task)
    task.add_done_callback(_ending.discard)
