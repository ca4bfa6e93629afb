"""A chain that is well costs the API server a line of status now and then, and nothing else."""

from functools import partial

from doubles.chain import ChainDouble
from pequod.controllers.rollup.observers import Pace
from rollups import Chains, StartFamily
from waiting import eventually, until

OFTEN = Pace(look=0.1, accounts=0.1, tell=0.1)
HEADS = "optimism_syncStatus"


def shows(opchains: Chains, double: ChainDouble) -> bool:
    return opchains.is_running() and opchains.height() == double.unsafe


async def test_nothing_is_asked_of_the_api_server_while_nothing_happens(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double, pace=OFTEN) as started:
        await until(opchains.is_running)
        double.makes_blocks = False
        await until(partial(shows, opchains, double))
        seen = double.times("node", HEADS)
        await eventually(lambda: double.times("node", HEADS) > seen + 10, "it is looked at")
        started.journal.clear()
        seen = double.times("node", HEADS)
        await eventually(lambda: double.times("node", HEADS) > seen + 30, "it is looked at")
        asked = [one for one in started.journal.asked if not (one.is_watch or one.is_event)]
        assert not asked
        assert opchains.is_running()


async def test_nothing_but_its_status_is_written_while_a_chain_gets_on(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double) as started:
        await until(opchains.is_running)
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        started.journal.clear()
        await until(lambda: opchains.height() > height + 4)
        asked = {(one.method, one.place) for one in started.journal.asked if not one.is_watch}
        path = f"/apis/rollup.oplabs.io/v1alpha1/namespaces/{opchains.namespace}/opchains/chain"
        assert {one for one in asked if "/events.k8s.io/" not in one[1]} == {
            ("PATCH", f"{path}/status")
        }


async def test_an_operator_that_starts_anew_writes_nothing_but_status(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    graph = (opchains.graph_of() or {})["metadata"]["resourceVersion"]
    height = opchains.height()
    async with family(double) as again:
        await until(lambda: opchains.is_running() and opchains.height() > height)
        written = {
            one.place.rpartition("/")[2]
            for one in again.journal.asked
            if one.writes and not (one.is_question or one.is_event)
        }
        assert written <= {"status"}
    assert (opchains.graph_of() or {})["metadata"]["resourceVersion"] == graph


async def test_each_secret_is_read_once_for_each_of_its_versions(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double) as started:
        await until(opchains.is_running)
        height = opchains.height()
        await until(lambda: opchains.height() > height + 4)
        read = [one.place for one in started.journal.of("/secrets/chain-") if not one.writes]
        own = [one for one in read if one.rpartition("-")[2] in {"genesis", "rollup", "jwt", "key"}]
        assert own
        assert len(own) == len(set(own))
