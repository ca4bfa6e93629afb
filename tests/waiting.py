"""Waiting inside an event loop: for conditions, never for time."""

import asyncio
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Awaitable, Callable
from inspect import isawaitable

PATIENCE = 20.0
POLL = 0.02

Condition = Callable[[], object] | Callable[[], Awaitable[object]]


async def eventually(condition: Condition, what: str, *, within: float = PATIENCE) -> None:
    """Wait for something to become true; fail with the sentence that did not."""
    last: object = None
    try:
        async with asyncio.timeout(within):
            while True:
                answer = condition()
                last = await answer if isawaitable(answer) else answer
                if last:
                    return
                await asyncio.sleep(POLL)
    except TimeoutError:
        raise AssertionError(f"{what}: not true within {within:g} s, but {last!r}") from None


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds that blocks while it is asked: in a thread of its own."""
    await eventually(lambda: asyncio.to_thread(condition), "what the test waits for", within=60.0)


async def connections_closed() -> None:
    """Wait until the loop has no socket but its own: TLS takes a moment to say goodbye."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, BaseSelectorEventLoop)
    sockets = loop._selector.get_map()  # type: ignore[attr-defined]
    itself = 1
    await eventually(lambda: len(sockets) == itself, "every connection is closed")
