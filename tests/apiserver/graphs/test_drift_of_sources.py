"""Drift of what values are taken from: it is put back, and never reaches those who take them."""

import asyncio
from functools import partial

import pytest

from evaluators import evaluating
from graphs import Graphs, Start, config_map, node
from lateness import intercept
from pequod.kube.transport import Request
from waiting import until

THEIRS = {"data": {"a": "theirs"}}


async def test_what_is_done_to_a_source_while_its_taker_is_put_back_is_not_passed_on(
    graphs: Graphs, engine: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer about the taker comes when the change of the source was heard of."""
    begun, known = asyncio.Event(), asyncio.Event()

    async def answered(request: Request) -> None:
        if "/configmaps/app?" in request.path and begun.is_set() and not known.is_set():
            await asyncio.to_thread(graphs.edit, "configmaps", "db", THEIRS)
            await known.wait()

    async def heard(chunk: bytes) -> None:
        if b"theirs" in chunk and b'"name":"db"' in chunk:
            known.set()

    intercept(monkeypatch, answered=answered, heard=heard)
    app = node("app", config_map("app", x="${nodes.db.data.a}"))
    graphs.create("web", node("db", config_map("db")), app)
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(partial(graphs.is_ready, "web"))
        await graphs.settled(running)
        running.journal.clear()
        begun.set()
        graphs.edit("configmaps", "app", {"data": {"x": "theirs"}})
        await until(lambda: known.is_set() and graphs.live("configmaps", "db")["data"]["a"] == "1")
        await graphs.settled(running)
        assert graphs.live("configmaps", "app")["data"] == {"x": "1"}
        assert len(running.journal.writes("configmaps/app")) <= 2, "refused once, then by force"
