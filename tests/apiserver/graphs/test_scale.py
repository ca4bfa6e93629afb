"""Large graphs and many graphs: they work, and a bad one is nobody else's problem."""

import asyncio
from functools import partial

import msgspec
import pytest

from graphs import Graphs, Start, config_map, node
from waiting import until

MANY = 500


@pytest.mark.timeout(280)
async def test_case_60_a_graph_of_a_thousand_nodes_is_executed_changed_and_deleted(
    graphs: Graphs, engine: Start
) -> None:
    nodes = [
        node(f"n{number:03}", config_map(f"n{number:03}"), dependsOn=[f"n{number // 10 - 1:03}"])
        if number >= 10
        else node(f"n{number:03}", config_map(f"n{number:03}"))
        for number in range(1000)
    ]
    graphs.create("web", *nodes)
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        assert len(running.journal.writes("configmaps/")) == 1000
        statuses = [one for one in running.journal.of("resourcegraphs") if one.writes]
        assert len(statuses) < 30
        status = graphs.status("web")
        assert len(msgspec.json.encode(status)) < 384 * 1024
        assert len(status["inventory"]) == 1000
        running.journal.clear()
        changed = [*nodes[:-1], node("n999", config_map("n999", a="2"), dependsOn=["n098"])]
        graphs.change("web", *changed)
        await until(partial(graphs.is_ready, "web"))
        assert len(running.journal.writes()) == 1
        running.journal.clear()
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        assert len(running.journal.writes()) == 1000
    assert (
        graphs.api.get(graphs.path("configmaps") + "?labelSelector=pequod.io/graph").body["items"]
        == []
    )


@pytest.mark.timeout(280)
async def test_case_9_a_poison_graph_among_five_hundred_delays_nobody(
    graphs: Graphs, engine: Start
) -> None:
    """One is in a circle, one refused by the API server, one denied, one too deep to be read."""
    deep: dict[str, object] = {}
    for _ in range(60):
        deep = {"a": deep}
    bad = config_map("bad", metadata={"labels": {"no spaces": "x"}})
    graphs.create("poison-circle", node("a", config_map("pa"), dependsOn=["a"]))
    graphs.create("poison-label", node("a", bad))
    graphs.create("poison-account", node("a", config_map("pb")), serviceAccountName="nobody")
    graphs.create("poison-deep", node("a", config_map("pc") | {"deep": deep}))

    def make(number: int) -> None:
        graphs.create(f"g{number:03}", node("a", config_map(f"g{number:03}")))

    async with engine():
        slots = asyncio.Semaphore(8)

        async def one(number: int) -> None:
            async with slots:
                await asyncio.to_thread(make, number)

        await asyncio.gather(*(one(number) for number in range(MANY)))
        await until(lambda: _ready(graphs) == MANY)
        assert graphs.reason("poison-circle") == "InvalidGraph"
        assert graphs.reason("poison-label") == "Invalid"
        assert graphs.reason("poison-account") == "AccountNotFound"
        assert graphs.reason("poison-deep") in {"Invalid", "InvalidGraph"}


def _ready(graphs: Graphs) -> int:
    path = f"/apis/platform.pequod.io/v1alpha1/namespaces/{graphs.namespace}/resourcegraphs"
    items = graphs.api.get(path).body["items"]
    return sum(item["status"].get("phase") == "Ready" for item in items)
