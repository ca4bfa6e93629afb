"""The operator is shown the past after a restart: cases 11 and 12, Sieve's time travel.

An API server that lags behind serves a list of graphs from before the last changes, and catches up
later. That is played once for all tests here: each has a namespace of its own, and looks at what
has become of it.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest
import pytest_asyncio

from faults import oracles
from faults.runs import QUIET
from faults.scenarios import NAME, changed_nodes, make, nodes, prepare
from faults.stage import Stage, in_thread
from faults.views import CHILDREN, GRAPHS, in_the_past, taken
from graphs import Graphs, config_map, node

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE, TWO = node("one", config_map("one")), node("two", config_map("two"))


@dataclass
class Story:
    """One namespace on the way into the past and back."""

    graphs: Graphs
    before: dict[str, str] = field(default_factory=dict)
    """UIDs of its objects when the operator ended."""
    written: int = 0
    """How much was written until then."""
    asked: int = 0
    """How much was asked for until then, by anybody."""
    past: dict[str, str] = field(default_factory=dict)
    """UIDs of its objects while the operator lived in the past."""
    after: dict[str, str] = field(default_factory=dict)
    """UIDs of its objects when the API server had caught up."""

    async def live(self) -> dict[str, str]:
        return oracles.uids(await in_thread(partial(oracles.objects, self.graphs)))

    async def make(self, stage: Stage) -> None:
        await in_thread(partial(prepare, self.graphs))
        await in_thread(partial(make, self.graphs))
        await self.ready(stage)

    async def change(self, *wanted: dict[str, object]) -> None:
        await in_thread(partial(self.graphs.change, NAME, *wanted))

    async def delete(self, stage: Stage) -> None:
        await in_thread(partial(self.graphs.delete, NAME))
        await stage.until(lambda: not self.graphs.exists(NAME), "the graph is gone")

    async def ready(self, stage: Stage) -> None:
        await stage.until(partial(self.graphs.is_ready, NAME), "the graph is ready")

    def was_confirmed(self, stage: Stage) -> bool:
        """Whether the graph itself was looked at, and not only the list that has it."""
        path = f"{self.graphs._path}/{NAME}"
        since = stage.proxy.journal[self.asked :]
        return any(call.method == "GET" and call.path == path for call in since)

    def changes(self, stage: Stage) -> str:
        """What was written since then, for a person; what was refused changed nothing."""
        calls = stage.writes(self.graphs.namespace)[self.written :]
        return oracles.shown([call for call in calls if call.code < 400])


@dataclass
class Journey:
    """All stories that a journey is told by."""

    deleted: Story
    successor: Story
    older_spec: Story
    wanted_again: Story
    made_since: Story
    unseen: Story

    @property
    def stories(self) -> tuple[Story, ...]:
        return (
            self.deleted,
            self.successor,
            self.older_spec,
            self.wanted_again,
            self.made_since,
            self.unseen,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def journey(theatre: Stage) -> Journey:
    """What is there when the list is made, what happens since, the past, and the present."""
    stage = theatre
    made = Journey(*[Story(await stage.namespace()) for _ in range(6)])
    seen = (made.deleted, made.successor, made.older_spec, made.wanted_again)
    await asyncio.gather(*(story.make(stage) for story in seen))
    await in_thread(partial(made.made_since.graphs.create, NAME, ONE))
    await made.made_since.ready(stage)
    async with stage.without_operator():
        await made.wanted_again.change(*changed_nodes())
        past = await taken(stage, GRAPHS)
        await made.wanted_again.change(*nodes())

    await asyncio.gather(made.deleted.delete(stage), made.successor.delete(stage))
    await in_thread(partial(make, made.successor.graphs))
    await made.older_spec.change(*changed_nodes())
    await made.made_since.change(ONE, TWO)
    await made.unseen.make(stage)
    for story in (made.successor, made.older_spec, made.made_since, made.wanted_again):
        await story.ready(stage)
    async with stage.without_operator():
        await made.made_since.change(ONE)
        for story in made.stories:
            story.before = await story.live()
            story.written = len(stage.writes(story.graphs.namespace))
            story.asked = len(stage.proxy.journal)

    async with in_the_past(stage, past) as lists:
        for story in (made.deleted, made.successor, made.older_spec, made.wanted_again):
            await stage.until(partial(story.was_confirmed, stage), "the graph was looked at")
        await asyncio.sleep(QUIET)
        assert lists.seen == 1
        for story in made.stories:
            story.past = await story.live()
    await asyncio.sleep(QUIET)
    await made.made_since.ready(stage)
    for story in made.stories:
        story.after = await story.live()
    return made


async def test_case_11_a_deleted_graph_that_is_seen_again_is_not_carried_out(
    theatre: Stage, journey: Journey
) -> None:
    assert journey.deleted.changes(theatre) == ""
    assert journey.deleted.past == journey.deleted.after == {}


async def test_case_11_the_objects_of_a_graphs_successor_are_not_touched_for_its_predecessor(
    theatre: Stage, journey: Journey
) -> None:
    story = journey.successor
    assert story.changes(theatre) == ""
    assert story.before == story.past == story.after
    assert len(story.after) == len(nodes())


async def test_case_11_an_older_spec_is_not_applied_again(theatre: Stage, journey: Journey) -> None:
    story = journey.older_spec
    assert story.changes(theatre) == ""
    assert story.before == story.past == story.after
    assert "ConfigMap/extra" in story.after
    assert "Service/app" not in story.after


async def test_case_11_nothing_is_pruned_that_only_the_past_did_not_want(
    theatre: Stage, journey: Journey
) -> None:
    """What was forgotten with the past may be applied again, which changes nothing."""
    story = journey.wanted_again
    assert "DELETE" not in story.changes(theatre)
    assert story.before == story.past == story.after
    assert "Service/app" in story.after
    assert len(theatre.writes(story.graphs.namespace)) <= story.written + 5


async def test_case_12_what_was_made_since_is_pruned_although_the_past_knew_nothing_of_it(
    journey: Journey,
) -> None:
    """The object was given up while nobody looked; the inventory of the past does not have it."""
    story = journey.made_since
    assert {*story.before} == {*story.past} == {"ConfigMap/one", "ConfigMap/two"}
    assert {*story.after} == {"ConfigMap/one"}
    assert story.before["ConfigMap/one"] == story.after["ConfigMap/one"]
    inventory = await in_thread(partial(story.graphs.inventory, NAME))
    assert {*inventory} == {"ConfigMap/one"}


async def test_case_12_the_objects_of_a_graph_that_is_not_seen_yet_are_left_alone(
    theatre: Stage, journey: Journey
) -> None:
    story = journey.unseen
    assert story.changes(theatre) == ""
    assert story.before == story.past == story.after
    assert len(story.after) == len(nodes())


async def test_case_12_objects_that_are_not_seen_yet_are_neither_made_twice_nor_orphaned(
    theatre: Stage,
) -> None:
    past = await taken(theatre, *CHILDREN)
    story = Story(await theatre.namespace())
    await story.make(theatre)
    state = partial(oracles.state, story.graphs, NAME)
    before, expected = await story.live(), await in_thread(state)
    written = len(theatre.writes(story.graphs.namespace))
    async with in_the_past(theatre, past) as lists:
        await theatre.until(lambda: lists.seen >= len(CHILDREN), "the objects were listed")
        await asyncio.sleep(QUIET)
        assert await story.live() == before
    await asyncio.sleep(QUIET)
    after = theatre.writes(story.graphs.namespace)[written:]
    assert not [call for call in after if call.method == "DELETE" or call.code == 201]
    assert len(after) <= 2 * len(before), oracles.shown(after)
    assert await story.live() == before
    assert oracles.differences(expected, await in_thread(state)) == []
