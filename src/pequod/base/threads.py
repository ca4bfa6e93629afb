"""Work in threads that has really ended when its caller goes on."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def finished(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run something in a thread; when the caller is cancelled, wait for its end all the same.

    A thread cannot be cancelled: what it does would go on beside whoever cleans up after it.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await _ended(running)
        raise


async def _ended(running: asyncio.Future[T]) -> None:
    """Wait for a future, however often we are told not to; its result is nobody's concern."""
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:
            continue
    if not running.cancelled():
        running.exception()
