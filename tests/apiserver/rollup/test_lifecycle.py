"""The life of a chain: deployed in order, running, changed, left alone."""

from functools import partial

import chains
from doubles.chain import ChainDouble
from rollups import Chains, Film, Object, StartFamily
from waiting import eventually, until

FAR = 4_000_000_000
"""A time to come."""


def serves(workload: Object) -> bool:
    return bool(workload.get("status", {}).get("readyReplicas") == 1)


def exists(_object: Object) -> bool:
    return True


async def test_a_chain_runs_when_its_blocks_advance(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.is_ready("chain"))
        assert opchains.chain_phase() == "Running"
        heights = opchains.component("node")
        assert 0 < heights["safeHeight"] < heights["unsafeHeight"]
        await until(lambda: opchains.component("node")["unsafeHeight"] > heights["unsafeHeight"])
        assert opchains.component("geth")["ready"]
        assert opchains.component("batcher")["balance"] == "100 ETH"
        told = {event["reason"] for event in opchains.events("chain")}
        await until(lambda: "Running" in {one["reason"] for one in opchains.events("chain")})
        assert "InternalError" not in told


async def test_programs_start_one_after_the_other(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    await film.catch_up()
    geth = film.first("statefulsets", "chain-geth", serves)
    node = film.first("deployments", "chain-node", serves)
    assert geth < film.first("deployments", "chain-node", exists)
    assert node < film.first("statefulsets", "chain-batcher", exists)
    assert node < film.first("statefulsets", "chain-proposer", exists)
    phases = film.phases()
    assert phases[-2:] == ["Deploying", "Running"]
    assert "Upgrading" not in phases
    assert "Error" not in phases


async def test_another_key_of_the_batcher_starts_the_batcher_anew_and_nothing_else(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        others = partial(opchains.identities, "geth", "node", "proposer")
        before, old = others(), opchains.identities("batcher")
        opchains.put("batcher-key", chains.STRANGER_KEY)
        await until(partial(opchains.says, "InvalidConfiguration"))
        opchains.alter(l1={"contractAddresses": {"batcher": chains.STRANGER}})
        await until(opchains.is_running)
        assert others() == before
        new = opchains.identities("batcher")["batcher"]
        assert new[0] != old["batcher"][0]
        assert new[1] == old["batcher"][1] + 1, "changed once"
        template = opchains.workload("batcher")["spec"]["template"]
        digest = template["metadata"]["annotations"]["rollup.oplabs.io/config-digest"]
        (pod,) = opchains.pods("batcher")
        assert pod["metadata"]["annotations"]["rollup.oplabs.io/config-digest"] == digest


async def test_another_fork_starts_geth_and_then_the_node_anew_while_nothing_is_sent(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    genesis, rollup = chains.with_forks(jovian=FAR)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.put("genesis", genesis)
        opchains.put("rollup", rollup)
        await until(lambda: opchains.identities("node")["node"] != before["node"])
        await until(opchains.is_running)
        assert all(opchains.identities()[one] != before[one] for one in before)
    await film.catch_up()
    assert "Upgrading" in film.phases()
    config = opchains.live("configmaps", "chain-node")["data"]["rollup.json"]
    assert str(FAR) in config
    first = film.first("statefulsets", "chain-geth", partial(is_of_generation, 2))
    second = film.first("deployments", "chain-node", partial(is_of_generation, 2))
    assert film.gone("pods", "chain-batcher-0") < first < second
    assert film.most_pods("batcher") == 1


def is_of_generation(generation: int, object_: Object) -> bool:
    return bool(object_["metadata"]["generation"] == generation)


async def test_a_proposer_that_is_disabled_goes_with_all_that_it_had(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        others = partial(opchains.identities, "geth", "node", "batcher")
        before = others()
        opchains.alter(components={"proposer": {"enabled": False}})
        await until(opchains.is_running)
        assert not opchains.is_there("proposer")
        assert opchains.find("services", "chain-proposer") is None
        assert opchains.find("secrets", "chain-proposer") is None
        assert others() == before
        assert opchains.reason("chain", "ProposerReady") == "Disabled"
        assert not opchains.component("proposer")
        opchains.alter(components={"proposer": {"enabled": True}})
        await until(opchains.is_running)
        assert opchains.component("proposer")["ready"]
        assert others() == before


async def test_a_chain_that_is_suspended_is_left_alone_with_everything_that_it_has(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double) as started:
        await until(opchains.is_running)
        opchains.alter(suspend=True)
        await until(lambda: (opchains.graph_of() or {})["spec"].get("suspend") is True)
        before = opchains.identities()
        started.journal.clear()
        opchains.upgrade(geth="op-geth:2")
        opchains.put("jwt", "not a JWT")
        opchains.remove("services", "chain-node")
        opchains.make_chain(double, "later")
        await until(partial(opchains.says, "SecretNotFound", "later"))
        assert opchains.identities() == before
        assert opchains.find("services", "chain-node") is None
        assert not started.journal.writes("chain-")
        opchains.put("jwt", chains.JWT)
        opchains.alter(suspend=False)
        await until(opchains.is_running)
        assert opchains.image("geth") == "op-geth:2"
        assert opchains.find("services", "chain-node") is not None


async def test_a_chain_that_is_resumed_is_kept_as_it_was_although_its_secrets_are_wrong(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        image = opchains.image("geth")
        opchains.alter(suspend=True)
        await until(lambda: (opchains.graph_of() or {})["spec"].get("suspend") is True)
        opchains.put("jwt", "not a JWT")
        opchains.upgrade(geth="op-geth:2")
        opchains.remove("services", "chain-node")
        opchains.alter(suspend=False)
        await until(lambda: opchains.find("services", "chain-node") is not None)
        assert opchains.image("geth") == image
        opchains.put("jwt", chains.JWT)
        await until(lambda: opchains.image("geth") == "op-geth:2")
        await until(opchains.is_running)


async def test_nobody_asks_a_chain_that_is_suspended(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    other = double.beside("other")
    opchains.make_secrets("other")
    opchains.make_chain(other, "other")
    async with family(double):
        await until(opchains.is_running)
        await until(partial(opchains.is_running, "other"))
        opchains.alter(suspend=True)
        await until(lambda: (opchains.graph_of() or {})["spec"].get("suspend") is True)
        double.asked.clear()
        other.asked.clear()
        await eventually(lambda: len(other.asked) > 45, "the other chain is looked at")
        assert len(double.asked) < 15, "no more than the look that was going on"


async def test_a_pod_that_is_killed_comes_back_and_the_chain_goes_on(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        (before,) = opchains.pods("geth")
        opchains.remove("pods", "chain-geth-0")
        await until(lambda: is_another(opchains, before))
        height = opchains.height()
        await until(lambda: opchains.is_running() and opchains.height() > height)


def is_another(opchains: Chains, before: Object) -> bool:
    found = opchains.pods("geth")
    return bool(found) and found[0]["metadata"]["uid"] != before["metadata"]["uid"]


async def test_what_somebody_changed_by_hand_is_put_back(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    """A second batcher, for one: whoever scales it up does not have it for long."""
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.edit("apps/v1/statefulsets", "chain-batcher", {"spec": {"replicas": 2}})
        await until(lambda: opchains.replicas("batcher") == 1)
        await until(lambda: len(opchains.pods("batcher")) == 1)
        await until(opchains.is_running)
