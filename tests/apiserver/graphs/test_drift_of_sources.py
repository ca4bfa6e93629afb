"""Drift of what values are taken from: it is put back, and never reaches those who take them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from evaluators import evaluating
from graphs import Graphs, Start, config_map, node
from pequod.kube.transport import Request, Transport
from waiting import until

THEIRS = {"data": {"a": "theirs"}}


async def test_what_is_done_to_a_source_while_its_taker_is_put_back_is_not_passed_on(
    graphs: Graphs, engine: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer about the taker comes when the change of the source was heard of."""
    send, stream = Transport.send, Transport.stream
    begun, heard = asyncio.Event(), asyncio.Event()

    async def late(self: Transport, request: Request) -> bytes:
        answer = await send(self, request)
        if "/configmaps/app?" in request.path and begun.is_set() and not heard.is_set():
            await asyncio.to_thread(graphs.edit, "configmaps", "db", THEIRS)
            await heard.wait()
        return answer

    @asynccontextmanager
    async def listening(
        self: Transport, request: Request, *, idle: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async with stream(self, request, idle=idle) as chunks:
            yield told(chunks)

    async def told(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            yield chunk
            if b"theirs" in chunk and b'"name":"db"' in chunk:
                heard.set()

    monkeypatch.setattr(Transport, "send", late)
    monkeypatch.setattr(Transport, "stream", listening)
    app = node("app", config_map("app", x="${nodes.db.data.a}"))
    graphs.create("web", node("db", config_map("db")), app)
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        await graphs.settled(running)
        running.journal.clear()
        begun.set()
        graphs.edit("configmaps", "app", {"data": {"x": "theirs"}})
        await until(lambda: heard.is_set() and graphs.live("configmaps", "db")["data"]["a"] == "1")
        await graphs.settled(running)
        assert graphs.live("configmaps", "app")["data"] == {"x": "1"}
        assert len(running.journal.writes("configmaps/app")) <= 2, "refused once, then by force"
