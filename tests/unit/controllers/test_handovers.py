"""What is handed over reaches the graph that it was stored with, for a while, and nobody else."""

import asyncio

from pequod.api.meta import ObjectMeta
from pequod.api.platform import ResourceGraph, ResourceGraphSpec, ResourceGraphStatus
from pequod.controllers.frontend.handover import LIFETIME, Handover
from virtualtime import virtual_time

PARTS = {("web-1a2b", "db"): b"correct horse battery staple"}


def graph(uid: str = "u1", generation: int = 1) -> ResourceGraph:
    return ResourceGraph(
        api_version="platform.pequod.io/v1alpha1",
        kind="ResourceGraph",
        metadata=ObjectMeta(name="web", namespace="team", uid=uid, generation=generation),
        spec=ResourceGraphSpec(nodes=()),
        status=ResourceGraphStatus(),
    )


@virtual_time
async def test_what_is_handed_over_is_there_for_a_while() -> None:
    handover = Handover()
    handover.put(graph(), PARTS)
    await asyncio.sleep(LIFETIME - 1)
    assert handover.of(graph()) == PARTS
    handover.put(graph(), PARTS)
    await asyncio.sleep(LIFETIME - 1)
    assert handover.of(graph()) == PARTS
    await asyncio.sleep(2)
    assert handover.of(graph()) == {}


@virtual_time
async def test_another_graph_of_the_name_gets_nothing() -> None:
    handover = Handover()
    handover.put(graph(), PARTS)
    assert handover.of(graph(uid="u2")) == {}
    assert handover.of(graph()) == PARTS


@virtual_time
async def test_a_graph_that_somebody_has_changed_since_gets_nothing() -> None:
    handover = Handover()
    handover.put(graph(), PARTS)
    assert handover.of(graph(generation=2)) == {}


@virtual_time
async def test_nothing_is_kept_for_a_graph_that_is_gone_or_somebody_elses() -> None:
    handover = Handover()
    handover.put(graph(), PARTS)
    handover.drop("u1")
    assert handover.of(graph()) == {}
    handover.put(graph(), PARTS)
    handover.clear()
    assert handover.of(graph()) == {}
