"""However a chain is changed, and whatever happens meanwhile: nobody sends while it changes."""

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chains
from pequod.api.graph import Graph, GraphMetadata
from pequod.controllers.frontend.compiling import compiled
from pequod.controllers.rollup.compiling import Parts, nodes_of, parts_in, parts_of
from pequod.controllers.rollup.components.chain import COMPONENTS, Chain, Component
from pequod.controllers.rollup.components.senders import SENDERS
from pequod.controllers.rollup.configuration import configuration
from pequod.controllers.rollup.upgrading import Situation, Stage, next_stage
from pequod.graph.digests import Digests
from pequod.graph.model import checked

BASE: tuple[Component, ...] = ("geth", "node")
Versions = tuple[int | None, ...]
"""Of op-geth, op-node, op-batcher and op-proposer; None for what is not asked for."""
PASSES = 12
"""More than any upgrade needs."""
UNHURRIED = settings(deadline=None)
"""The first look at a wish compiles it."""


@functools.cache
def wish(versions: Versions, size: int = 1) -> Parts:
    """What somebody may want a chain to be, as its graph has it."""
    components: dict[str, Any] = {
        one: {"enabled": version is not None, "image": f"example/{one}:{version}"}
        for one, version in zip(COMPONENTS, versions, strict=True)
    }
    components["geth"]["storage"] = {"size": f"{size}Ti"}
    asked = chains.spec(components=components)
    absent = {f"{one}_key": None for one in SENDERS if not components[one]["enabled"]}
    made = Chain("chain", "rollups", asked, configuration(asked, chains.material(**absent)))
    graph = compiled(
        Graph(nodes=nodes_of(parts_of(made))),
        name="opchain-chain",
        digests=Digests(b"k" * 32),
        origin=GraphMetadata(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return parts_in(graph.nodes)


VERSIONS = st.tuples(
    *([st.sampled_from([None, 1, 2, 3])] * 2), *([st.sampled_from([None, 1, 2])] * 2)
)
WISHES = st.builds(wish, VERSIONS, st.integers(1, 2))
COMPLETE = st.builds(wish, st.tuples(*([st.integers(1, 3)] * 4)), st.integers(1, 2))
"""Chains of which every program is there."""


def workload(parts: Parts, component: Component) -> dict[str, Any] | None:
    found = [node.object for node in parts.get(component, ()) if node.id == component]
    return found[0]["spec"] if found else None


def template(parts: Parts, component: Component) -> dict[str, Any] | None:
    found = workload(parts, component)
    return found["template"] if found else None


def sending(parts: Parts) -> list[Component]:
    """Programs that send, and are told to run."""
    found = {one: workload(parts, one) for one in SENDERS}
    return [one for one, spec in found.items() if spec is not None and spec["replicas"] > 0]


def changed(before: Parts, after: Parts) -> list[Component]:
    """Programs of the chain that are there before and after, and run in another way."""
    both = [one for one in BASE if one in before and one in after]
    return [one for one in both if template(before, one) != template(after, one)]


@dataclass
class World:
    """A chain, the graph that is stored of it, and what is known of both."""

    stored: Parts
    ready: set[Component] = field(default_factory=lambda: {*COMPONENTS})
    answers: bool = True
    advances: bool = True
    broken: set[Component] = field(default_factory=set)

    def look(self, wanted: Parts) -> Stage:
        """One pass of the operator: what is stored next."""
        situation = Situation(
            is_ready=lambda one: one in self.ready, answers=self.answers, advances=self.advances
        )
        stage = next_stage(wanted, self.stored, situation)
        self.check(stage, wanted)
        if stage.parts != self.stored:
            self.store(stage.parts)
        return stage

    def store(self, parts: Parts) -> None:
        self.ready -= {
            one for one in COMPONENTS if workload(parts, one) != workload(self.stored, one)
        }
        self.stored, self.answers, self.advances = parts, False, False

    def check(self, stage: Stage, wanted: Parts) -> None:
        """What must hold in every pass."""
        moved = changed(self.stored, stage.parts)
        if moved:
            assert sending(self.stored) == [], "somebody sends while the chain changes"
            assert {one for one in SENDERS if one in self.stored} <= self.ready, "pods are left"
            assert sending(stage.parts) == [], "somebody starts while the chain changes"
            assert len(moved) == 1, "one after the other"
        if moved == ["node"] and "geth" in self.stored and "geth" in wanted:
            assert "geth" in self.ready, "op-node changes before op-geth serves"
            assert self.answers, "op-node changes before op-geth serves"
        if sending(stage.parts) and not sending(self.stored) and {*SENDERS} & {*self.stored}:
            lasting = {one for one in BASE if one in self.stored and one in wanted}
            assert lasting <= self.ready, "somebody starts before the chain serves"
        for one in BASE:
            if template(self.stored, one) == template(wanted, one):
                assert template(stage.parts, one) == template(wanted, one), "it goes back"
        assert stage.waits or stage.parts == wanted

    def heal(self) -> None:
        """Everything becomes as the graph has it."""
        self.ready = {*COMPONENTS} - self.broken
        self.answers, self.advances = "geth" in self.ready, {*BASE} <= self.ready


def settled(world: World, wanted: Parts) -> Parts:
    """What is stored at last when everything gets ready that can."""
    for _ in range(PASSES):
        world.look(wanted)
        world.heal()
    return world.stored


@dataclass(frozen=True)
class Event:
    """Something that happens between two passes."""

    what: Literal["ready", "not ready", "answers", "advances", "restart", "heal", "nothing"]
    which: Component = "geth"

    def happen(self, world: World) -> None:
        if self.what == "ready":
            world.ready.add(self.which)
        elif self.what == "not ready":
            world.ready.discard(self.which)
        elif self.what == "answers":
            world.answers = True
        elif self.what == "advances":
            world.advances = True
        elif self.what == "restart":
            world.answers = world.advances = False
        elif self.what == "heal":
            world.heal()


EVENTS = st.lists(
    st.one_of(
        st.builds(Event, st.sampled_from(["ready", "not ready"]), st.sampled_from(COMPONENTS)),
        st.builds(
            Event, st.sampled_from(["answers", "advances", "restart", "heal", "nothing", "ready"])
        ),
    ),
    max_size=25,
)


def live(world: World, wanted: Parts, events: Iterable[Event]) -> None:
    for event in events:
        event.happen(world)
        world.look(wanted)


@UNHURRIED
@given(stored=WISHES, wanted=WISHES, events=EVENTS)
def test_nobody_sends_while_a_chain_changes(
    stored: Parts, wanted: Parts, events: list[Event]
) -> None:
    live(World(stored), wanted, events)


@UNHURRIED
@given(stored=WISHES, wishes=st.lists(st.tuples(WISHES, EVENTS), min_size=1, max_size=4))
def test_nobody_sends_while_wishes_change_as_well(
    stored: Parts, wishes: list[tuple[Parts, list[Event]]]
) -> None:
    world = World(stored)
    for wanted, events in wishes:
        live(world, wanted, events)
    assert settled(world, wishes[-1][0]) == wishes[-1][0]


@UNHURRIED
@given(stored=WISHES, wanted=WISHES, events=EVENTS)
def test_a_chain_is_what_is_wanted_when_everything_gets_ready(
    stored: Parts, wanted: Parts, events: list[Event]
) -> None:
    world = World(stored)
    live(world, wanted, events)
    assert settled(world, wanted) == wanted
    assert world.look(wanted) == Stage(wanted)


@UNHURRIED
@given(stored=WISHES, wanted=WISHES, events=EVENTS)
def test_every_graph_on_the_way_can_be_executed(
    stored: Parts, wanted: Parts, events: list[Event]
) -> None:
    world = World(stored)
    for event in [*events, *([Event("heal")] * PASSES)]:
        event.happen(world)
        checked(nodes_of(world.look(wanted).parts))


@UNHURRIED
@given(
    stored=COMPLETE,
    versions=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    events=EVENTS,
    broken=st.sampled_from(BASE),
)
def test_a_version_that_never_serves_can_be_left(
    stored: Parts, versions: tuple[int, int], events: list[Event], broken: Component
) -> None:
    world = World(stored, broken={broken})
    live(world, wish((*versions, 1, 1)), [one for one in events if one.what != "heal"])
    world.heal()
    other = [9 if one == broken else versions[n] for n, one in enumerate(BASE)]
    better = wish((*other, 1, 1))
    for _ in range(PASSES):
        world.look(better)
        world.heal()
        if template(world.stored, broken) == template(better, broken):
            world.broken = set()
    assert world.stored == better


@pytest.mark.parametrize("died", range(6))
def test_it_does_not_matter_when_an_operator_dies(died: int) -> None:
    """The next one sees the stored graph, and nothing else of what the last one knew."""
    wanted, world = wish((2, 2, 2, 2)), World(wish((1, 1, 1, 1)))
    for number in itertools.count():
        if number == died:
            world.answers = world.advances = False
            assert world.look(wanted).parts == world.stored
        if world.look(wanted) == Stage(wanted):
            break
        world.heal()
        assert number < PASSES
    assert settled(world, wanted) == wanted
