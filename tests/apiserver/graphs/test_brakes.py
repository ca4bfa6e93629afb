"""Rule 6: what needs somebody's agreement needs it until it is given, whatever comes between."""

from functools import partial

from graphs import Graphs, Object, Start, config_map, node
from waiting import until

OLD = ("a", "b", "c", "d")
NEW = ("m", "n", "o", "p", "q", "r")


def maps(*names: str) -> list[Object]:
    return [node(name, config_map(name)) for name in names]


def is_blocked(graphs: Graphs) -> bool:
    """Whether the newest generation waits for an agreement."""
    said = graphs.condition("web", "Pruned")
    newest = graphs.get("web")["metadata"]["generation"]
    return said.get("reason") == "PruneBlocked" and said["observedGeneration"] == newest


def all_there(graphs: Graphs, *names: str) -> bool:
    return all(graphs.find("configmaps", name) is not None for name in names)


async def test_case_49_what_a_change_adds_does_not_release_the_brake_after_a_pause(
    graphs: Graphs, engine: Start
) -> None:
    graphs.create("web", *maps(*OLD))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", *NEW))
        await until(lambda: is_blocked(graphs) and all_there(graphs, *NEW))
        graphs.patch("web", {"spec": {"suspend": True}})
        await graphs.settled(running)
        graphs.patch("web", {"spec": {"suspend": False}})
        await until(partial(is_blocked, graphs))
        assert "would delete 3 of 4 objects" in graphs.message("web", "Pruned")
    assert all_there(graphs, *OLD)


async def test_case_49_a_broken_change_in_between_does_not_release_the_brake(
    graphs: Graphs, engine: Start
) -> None:
    bad = node("bad", config_map("bad", metadata={"labels": {"no spaces": "x"}}))
    graphs.create("web", *maps(*OLD))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", *NEW), bad)
        await until(lambda: graphs.reason("web", "Applied") == "Invalid")
        await until(lambda: is_blocked(graphs) and all_there(graphs, *NEW))
        graphs.change("web", *maps("a", *NEW))
        await until(lambda: is_blocked(graphs) and graphs.reason("web") == "PruneBlocked")
    assert all_there(graphs, *OLD)


async def test_case_49_another_operator_finds_the_brake_on(graphs: Graphs, engine: Start) -> None:
    graphs.create("web", *maps(*OLD))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", *NEW))
        await until(lambda: is_blocked(graphs) and all_there(graphs, *NEW))
    async with engine() as running:
        await graphs.settled(running)
        assert is_blocked(graphs)
        graphs.change("web", *maps("a", "b", "c", "d", *NEW))
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "b", "c", *NEW))
        await until(partial(graphs.is_ready, "web"))
    assert all_there(graphs, "a", "b", "c", *NEW)
    assert graphs.find("configmaps", "d") is None


async def test_case_49_the_brake_is_stored_before_anything_is_made(
    graphs: Graphs, engine: Start
) -> None:
    """An operator that ends in between would count what it has made."""
    graphs.create("web", *maps(*OLD))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        running.journal.clear()
        graphs.change("web", *maps("a", *NEW))
        await until(lambda: is_blocked(graphs) and all_there(graphs, *NEW))
        asked = [one for one in running.journal.asked if one.writes and not one.is_event]
        first = next(one for one in asked if not one.is_question)
    assert first.place.endswith("/web/status")
    told = [event for event in graphs.events("web") if event["reason"] == "PruneBlocked"]
    assert len(told) == 1


async def test_what_was_agreed_to_goes_when_everything_else_is_applied(
    graphs: Graphs, engine: Start
) -> None:
    """Meanwhile nobody is asked to agree again."""
    graphs.make("configmaps", config_map("taken"))
    graphs.create("web", *maps(*OLD))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.change("web", *maps("a", "taken"))
        await until(partial(is_blocked, graphs))
        agreement = graphs.message("web", "Pruned").rpartition(" ")[2].strip("`")
        name, _, value = agreement.partition("=")
        graphs.patch("web", {"metadata": {"annotations": {name: value}}})
        await until(lambda: graphs.reason("web", "Pruned") == "PruneAgreed")
        assert all_there(graphs, *OLD)
    async with engine():
        graphs.remove("configmaps", "taken")
        await until(partial(graphs.is_ready, "web"))
    assert graphs.inventory("web").keys() == {"ConfigMap/a", "ConfigMap/taken"}
