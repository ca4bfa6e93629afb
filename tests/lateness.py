"""Late requests and answers, by `pytest --late SECONDS`: what passes only by haste fails then.

A test that assumes more than it waited for passes on an idle machine and fails on a busy one. Here
every request of the code under test leaves late, and every answer and event arrives late, each by
a random time, so that the states in between last long enough to be seen.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pequod.kube.transport import Request, Transport


def make_late(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have everything between us and API servers take up to that much longer, each way."""
    send, stream = Transport.send, Transport.stream

    async def pause() -> None:
        await asyncio.sleep(random.uniform(0, seconds))

    async def late_send(self: Transport, request: Request) -> bytes:
        await pause()
        answer = await send(self, request)
        await pause()
        return answer

    @asynccontextmanager
    async def late_stream(
        self: Transport, request: Request, *, idle: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async with stream(self, request, idle=idle) as chunks:
            yield late_chunks(chunks)

    async def late_chunks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await pause()
            yield chunk

    patch.setattr(Transport, "send", late_send)
    patch.setattr(Transport, "stream", late_stream)
