"""Events that come late, never, twice, or out of order: cases 13 to 16."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial

import pytest
import pytest_asyncio

from faults import oracles
from faults.runs import QUIET, Budget, Player, Run
from faults.scenarios import NAME, SCENARIOS, UPDATE
from faults.stage import Stage, in_thread
from faults.sweep import EXHAUSTIVE, SEED
from faults.views import GRAPHS, Dropped, Feeds, Withheld, nudged
from graphs import Graphs, config_map, node
from pequod.base.tasks import end

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def feeds(theatre: Stage) -> AsyncIterator[Feeds]:
    """Every event that the operator hears of graphs and of their objects."""
    made = Feeds()
    async with theatre.without_operator():
        rule = theatre.proxy.rule(made.has, made.act)
    await theatre.ready()
    yield made
    rule.remove()


async def ready_graph(theatre: Stage) -> Graphs:
    """A namespace with a graph that is ready."""
    graphs = await theatre.namespace()
    await in_thread(partial(UPDATE.prepare, graphs))
    await theatre.until(partial(graphs.is_ready, NAME), "the graph is ready")
    return graphs


async def live(graphs: Graphs) -> dict[str, str]:
    return oracles.uids(await in_thread(partial(oracles.objects, graphs)))


@pytest.fixture(scope="module")
def players(theatre: Stage) -> dict[str, Player]:
    return {name: Player(theatre, scenario) for name, scenario in SCENARIOS.items()}


async def played(players: dict[str, Player], runs: list[Run], budget: Budget) -> None:
    """Play one run of each scenario at once, and judge them."""
    await asyncio.gather(*(players[run.scenario.name].play(run) for run in runs))
    await asyncio.gather(*(players[run.scenario.name].judge(run) for run in runs))
    for run in runs:
        await players[run.scenario.name].conclude([run], budget)


async def one_of_each(players: dict[str, Player], fault: str) -> list[Run]:
    """Runs that are where their scenarios begin."""
    await asyncio.gather(*(player.reference() for player in players.values()))
    runs = [await player.fresh(fault) for player in players.values()]
    await asyncio.gather(*(players[run.scenario.name].prepared([run]) for run in runs))
    return runs


async def test_case_13_what_we_wrote_is_known_before_the_watch_tells_of_it(
    players: dict[str, Player], feeds: Feeds
) -> None:
    runs = await one_of_each(players, "late events")
    with feeds.lagging(lambda: 1.5):
        await played(players, runs, Budget(more=2))


async def test_case_16_events_that_come_twice_and_out_of_order_change_nothing(
    players: dict[str, Player], feeds: Feeds
) -> None:
    runs = await one_of_each(players, "doubled events")
    chance = random.Random(SEED)
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(feeds.edited(run.namespace, lambda _k, _e, line: [line, line]))
        stack.enter_context(feeds.lagging(lambda: chance.uniform(0.0, 0.4)))
        await played(players, runs, Budget(more=3))


KINDS = ("ResourceGraph", "Deployment", "ConfigMap", "Secret", "Service", "ServiceAccount")


def points() -> list[tuple[str, int]]:
    """Which event of which kind is lost."""
    if EXHAUSTIVE:
        return [(kind, number) for kind in KINDS for number in range(1, 8)]
    few = [("ResourceGraph", number) for number in (1, 2)]
    return [*few, *(("Deployment", number) for number in (1, 2, 3)), ("ConfigMap", 1)]


async def played_without(player: Player, feeds: Feeds) -> int:
    """Play a scenario once for each event that is lost; how many were."""
    await player.reference()
    lost = {f"{kind} {number} lost": Dropped(kind, number) for kind, number in points()}
    runs = await player.prepared([await player.fresh(name) for name in lost])

    async def play(run: Run) -> None:
        nudging = asyncio.create_task(nudged(player.stage, run.namespace, NAME, after=3.0))
        with feeds.edited(run.namespace, lost[run.fault].edit):
            await player.play(run)
        await end(nudging)
        await player.judge(run)

    await asyncio.gather(*(play(run) for run in runs))
    await player.conclude(runs, Budget(more=12))
    return sum(bool(one.lost) for one in lost.values())


async def test_case_14_a_lost_event_is_made_up_for_by_the_next_one(
    players: dict[str, Player], feeds: Feeds
) -> None:
    """What needs the lost event waits for the next one of the graph or of the object.

    There is no next one after the last of an object: then it is asked for.
    """
    if EXHAUSTIVE:
        counts = [await played_without(player, feeds) for player in players.values()]
    else:
        each = (played_without(player, feeds) for player in players.values())
        counts = await asyncio.gather(*each)
    assert all(count >= 3 for count in counts)


async def test_case_15_a_change_that_was_undone_unseen_costs_little_and_harms_nothing(
    theatre: Stage, feeds: Feeds
) -> None:
    graphs = await ready_graph(theatre)
    before, written = await live(graphs), len(theatre.writes(graphs.namespace))
    unseen = Withheld("ConfigMap")
    with feeds.edited(graphs.namespace, unseen.edit):
        for text in ("goodbye", "hello"):
            body = {"data": {"greeting": text}}
            await in_thread(partial(graphs.edit, "configmaps", "settings", body))
        await theatre.until(lambda: len(unseen.events) == 2, "both events came")
    feeds.feeds["/api/v1/configmaps"].inject(unseen.last)
    await asyncio.sleep(QUIET)
    assert len(theatre.writes(graphs.namespace)) <= written + 4
    assert await live(graphs) == before
    await theatre.until(partial(graphs.is_ready, NAME), "the graph is ready")
    settings = await in_thread(partial(graphs.live, "configmaps", "settings"))
    assert settings["data"] == {"greeting": "hello", "debug": "yes"}


async def test_case_15_an_object_that_became_another_one_unseen_is_known_by_its_new_uid(
    theatre: Stage, feeds: Feeds
) -> None:
    graphs = await ready_graph(theatre)
    old = await in_thread(partial(graphs.live, "configmaps", "notes"))
    labels = old["metadata"]["labels"]
    unseen = Withheld("ConfigMap")
    with feeds.edited(graphs.namespace, unseen.edit):
        await in_thread(partial(graphs.remove, "configmaps", "notes"))
        copy = config_map("notes", {"labels": labels}, text="by somebody else")
        new = await in_thread(partial(graphs.make, "configmaps", copy))
        await theatre.until(lambda: len(unseen.events) == 2, "both events came")
    feeds.feeds["/api/v1/configmaps"].inject(unseen.last)
    uid = new["metadata"]["uid"]
    await theatre.until(
        lambda: graphs.inventory(NAME)["ConfigMap/notes"] == uid, "the inventory has the new UID"
    )
    found = await in_thread(partial(graphs.live, "configmaps", "notes"))
    assert found["metadata"]["uid"] == uid


async def test_case_15_a_graph_that_became_another_one_unseen_begins_anew(
    theatre: Stage, feeds: Feeds
) -> None:
    """Somebody takes the finalizer off: the objects are nobody's then, and stay."""
    graphs = await theatre.namespace()
    await in_thread(partial(graphs.create, NAME, node("one", config_map("one"))))
    await theatre.until(partial(graphs.is_ready, NAME), "the graph is ready")
    before = await live(graphs)
    unseen = Withheld("ResourceGraph")
    with feeds.edited(graphs.namespace, unseen.edit):
        await in_thread(partial(graphs.delete, NAME))
        await in_thread(partial(graphs.patch, NAME, {"metadata": {"finalizers": []}}))
        await in_thread(partial(graphs.create, NAME, node("two", config_map("two"))))
        await theatre.until(
            lambda: any(event["type"] == "ADDED" for event in unseen.events), "the event came"
        )
    feeds.feeds[GRAPHS].inject(unseen.last)
    await theatre.until(partial(graphs.is_ready, NAME), "the other graph is ready")
    after = await live(graphs)
    assert after["ConfigMap/one"] == before["ConfigMap/one"]
    assert await in_thread(partial(graphs.inventory, NAME)) == {
        "ConfigMap/two": after["ConfigMap/two"]
    }
