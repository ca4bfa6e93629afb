"""Late requests and answers, by `pytest --late SECONDS`: what passes only by haste fails then.

A test that assumes more than it waited for passes on an idle machine and fails on a busy one. Here
every request of the code under test leaves late, and every answer and event arrives late, each by
a random time, so that the states in between last long enough to be seen.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pequod.kube.transport import Request, Transport


async def _nothing(_of: Request | bytes) -> None:
    """Nothing is done in between."""


def intercept(
    patch: pytest.MonkeyPatch,
    *,
    leaving: Callable[[Request], Awaitable[None]] = _nothing,
    answered: Callable[[Request], Awaitable[None]] = _nothing,
    arriving: Callable[[bytes], Awaitable[None]] = _nothing,
    heard: Callable[[bytes], Awaitable[None]] = _nothing,
) -> None:
    """Do something before requests leave and answers arrive, before and after events are heard."""
    send, stream = Transport.send, Transport.stream

    async def intercepted_send(self: Transport, request: Request) -> bytes:
        await leaving(request)
        answer = await send(self, request)
        await answered(request)
        return answer

    @asynccontextmanager
    async def intercepted_stream(
        self: Transport, request: Request, *, idle: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async with stream(self, request, idle=idle) as chunks:
            yield intercepted(chunks)

    async def intercepted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await arriving(chunk)
            yield chunk
            await heard(chunk)

    patch.setattr(Transport, "send", intercepted_send)
    patch.setattr(Transport, "stream", intercepted_stream)


def make_late(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have everything between us and API servers take up to that much longer, each way."""

    async def pause(_of: Request | bytes) -> None:
        await asyncio.sleep(random.uniform(0, seconds))

    intercept(patch, leaving=pause, answered=pause, arriving=pause)
