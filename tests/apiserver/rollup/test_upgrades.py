"""Another version of a chain: nothing is sent while op-geth and op-node change, one by one."""

from collections.abc import Callable
from functools import partial

import pytest

import chains
from doubles.chain import ChainDouble
from rollups import Chains, Film, Object, StartFamily, image_of
from waiting import eventually, until

HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}
NEW = {"geth": "op-geth:2", "node": "op-node:2"}
MORE_THAN_THERE_IS = {"requests": {"cpu": "2k"}}
"""The simulated node has half of that."""
CONTRADICTION = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}


def has_image(image: str, workload: Object) -> bool:
    return image_of(workload) == image


def is_idle(workload: Object) -> bool:
    """Whether a StatefulSet has no pods, and is to have none."""
    status = workload.get("status", {})
    seen = status.get("observedGeneration") == workload["metadata"]["generation"]
    return bool(seen and workload["spec"]["replicas"] == 0 and status.get("replicas", 0) == 0)


def is_started(workload: Object) -> bool:
    return bool(workload["spec"]["replicas"] == 1)


def serves(image: str, workload: Object) -> bool:
    """Whether a workload runs the pod that it is to run."""
    status = workload.get("status", {})
    return bool(
        image_of(workload) == image
        and status.get("observedGeneration") == workload["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("readyReplicas") == 1
    )


def forbid_pods(opchains: Chains) -> None:
    """Have no pod start in the namespace."""
    opchains.make("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})


async def allow_pods(opchains: Chains) -> None:
    opchains.remove("resourcequotas", "none")
    await until(lambda: opchains.find("resourcequotas", "none") is None)


async def some_looks(double: ChainDouble) -> None:
    """Wait while the chain is looked at again and again, and each look has it reconciled."""
    seen = len(double.asked)
    await eventually(lambda: len(double.asked) > seen + 60, "the chain is looked at")


async def test_an_upgrade_stops_what_sends_then_changes_geth_then_the_node(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.upgrade(**NEW)
        await until(opchains.is_running)
        assert {one: opchains.image(one) for one in NEW} == NEW
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 1
    await film.catch_up()
    geth = film.first("statefulsets", "chain-geth", partial(has_image, NEW["geth"]))
    node = film.first("deployments", "chain-node", partial(has_image, NEW["node"]))
    back = film.first("deployments", "chain-node", partial(serves, NEW["node"]))
    for sender in ("chain-batcher", "chain-proposer"):
        idle = film.first("statefulsets", sender, is_idle)
        assert idle < geth
        assert film.gone("pods", f"{sender}-0") < geth
        assert film.first("statefulsets", sender, is_started, since=idle) > back
    assert film.first("statefulsets", "chain-geth", partial(serves, NEW["geth"])) < node
    assert film.most_pods("batcher") == film.most_pods("geth") == 1
    assert film.most_pods("proposer") == film.most_pods("node") == 1
    assert film.phases()[-3:] == ["Running", "Upgrading", "Running"]


async def test_geth_does_not_change_while_the_pod_of_the_batcher_is_still_there(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.image("geth")
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.upgrade(**NEW)
        await until(lambda: opchains.replicas("batcher") == 0)
        await some_looks(double)
        assert opchains.image("geth") == before
        assert opchains.chain_phase() == "Upgrading"
        assert "waits until the batcher and the proposer stop" in opchains.message("chain")
        assert opchains.says("Upgrading", kind="BatcherReady")
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
        await until(opchains.is_running)
        assert {one: opchains.image(one) for one in NEW} == NEW


async def test_an_upgrade_waits_for_blocks_before_anything_is_sent_again(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.upgrade(**NEW)
        await until(lambda: opchains.replicas("batcher") == 0)
        double.makes_blocks = False
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
        await until(lambda: serves(NEW["node"], opchains.workload("node")))
        await some_looks(double)
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 0
        assert opchains.chain_phase() == "Upgrading"
        assert "waits until op-node makes blocks the new way" in opchains.message("chain")
        double.makes_blocks = True
        await until(opchains.is_running)
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 1


async def test_blocks_of_the_former_node_do_not_speak_for_the_new_one(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    """The former one makes blocks until its pod is gone; that can take a minute."""
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        (pod,) = opchains.pods("node")
        opchains.edit("pods", pod["metadata"]["name"], HOLD)
        opchains.upgrade(node=NEW["node"])
        await until(lambda: opchains.image("node") == NEW["node"])
        await some_looks(double)
        double.makes_blocks = False
        opchains.edit("pods", pod["metadata"]["name"], {"metadata": {"finalizers": None}})
        await until(lambda: serves(NEW["node"], opchains.workload("node")))
        await some_looks(double)
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 0
        double.makes_blocks = True
        await until(opchains.is_running)


def is_stopping(opchains: Chains) -> bool:
    return opchains.replicas("batcher") == 0


def has_new_geth(opchains: Chains) -> bool:
    return opchains.image("geth") == NEW["geth"]


def has_new_node(opchains: Chains) -> bool:
    return opchains.image("node") == NEW["node"]


@pytest.mark.parametrize("reached", [is_stopping, has_new_geth, has_new_node])
async def test_an_operator_that_is_killed_in_the_middle_of_an_upgrade_ends_it_when_it_is_back(
    family: StartFamily,
    opchains: Chains,
    double: ChainDouble,
    film: Film,
    reached: Callable[[Chains], bool],
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        if reached is is_stopping:
            opchains.edit("pods", "chain-batcher-0", HOLD)
        elif reached is has_new_geth:
            forbid_pods(opchains)
        opchains.upgrade(**NEW)
        if reached is has_new_node:
            await until(partial(has_new_geth, opchains))
            double.makes_blocks = False
        await until(partial(reached, opchains))
    if reached is is_stopping:
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
    elif reached is has_new_geth:
        await allow_pods(opchains)
    double.makes_blocks = True
    async with family(double):
        await until(opchains.is_running)
        assert {one: opchains.image(one) for one in NEW} == NEW
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 1
    await film.catch_up()
    geth = film.first("statefulsets", "chain-geth", partial(has_image, NEW["geth"]))
    node = film.first("deployments", "chain-node", partial(has_image, NEW["node"]))
    idle = film.first("statefulsets", "chain-batcher", is_idle)
    assert film.gone("pods", "chain-batcher-0") < geth < node
    assert film.first("statefulsets", "chain-batcher", is_started, since=idle) > node
    assert film.most_pods("batcher") == 1


def runs(opchains: Chains, image: str) -> bool:
    """Whether the pod of geth is of an image."""
    return [pod["spec"]["containers"][0]["image"] for pod in opchains.pods("geth")] == [image]


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (MORE_THAN_THERE_IS, "0 of 1 replicas are ready"),
        (CONTRADICTION, "must be less than or equal to cpu limit"),
    ],
    ids=["a pod that never runs", "a pod that cannot be"],
)
async def test_a_new_geth_that_cannot_run_is_mended_by_another_edit(
    family: StartFamily, opchains: Chains, double: ChainDouble, resources: Object, said: str
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.alter(components={"geth": {"image": "op-geth:bad", "resources": resources}})
        await until(lambda: said in opchains.message("chain", "GethReady"))
        if resources is MORE_THAN_THERE_IS:
            await until(lambda: runs(opchains, "op-geth:bad"))
        assert opchains.chain_phase() == "Upgrading"
        assert opchains.replicas("batcher") == 0
        opchains.alter(components={"geth": {"image": "op-geth:3", "resources": None}})
        await until(opchains.is_running)
        assert opchains.image("geth") == "op-geth:3"
        assert runs(opchains, "op-geth:3")
        assert opchains.replicas("batcher") == 1


async def test_an_upgrade_that_is_taken_back_halfway_ends_as_it_began(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = {one: opchains.image(one) for one in NEW}
        geth = opchains.identities("geth")
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.upgrade(**NEW)
        await until(lambda: opchains.replicas("batcher") == 0)
        opchains.upgrade(**before)
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
        await until(opchains.is_running)
        assert opchains.identities("geth") == geth
        assert opchains.replicas("batcher") == opchains.replicas("proposer") == 1


async def test_an_upgrade_whose_configuration_becomes_invalid_halfway_is_not_over(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.upgrade(**NEW)
        await until(lambda: opchains.replicas("batcher") == 0)
        opchains.put("jwt", "not a JWT")
        await until(partial(opchains.says, "InvalidConfiguration"))
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
        await until(lambda: is_idle(opchains.workload("batcher")))
        await some_looks(double)
        assert opchains.chain_phase() == "Upgrading", "nothing is sent"
        opchains.put("jwt", chains.JWT)
        await until(opchains.is_running)
        assert {one: opchains.image(one) for one in NEW} == NEW


async def test_another_batcher_takes_the_place_of_the_last_one_without_an_upgrade_of_the_rest(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        others = partial(opchains.identities, "geth", "node", "proposer")
        before = others()
        opchains.upgrade(batcher="op-batcher:2")
        await until(opchains.is_running)
        assert others() == before
        (pod,) = opchains.pods("batcher")
        assert pod["spec"]["containers"][0]["image"] == "op-batcher:2"
    await film.catch_up()
    assert "Upgrading" not in film.phases()
    assert film.most_pods("batcher") == 1


async def test_another_node_leaves_geth_alone(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities("geth")
        opchains.upgrade(node=NEW["node"])
        await until(opchains.is_running)
        assert opchains.identities("geth") == before
    await film.catch_up()
    node = film.first("deployments", "chain-node", partial(has_image, NEW["node"]))
    idle = film.first("statefulsets", "chain-batcher", is_idle)
    assert film.gone("pods", "chain-batcher-0") < node
    assert film.first("statefulsets", "chain-batcher", is_started, since=idle) > node


async def test_a_chain_that_sends_nothing_is_upgraded_as_well(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    disabled = {"batcher": {"enabled": False}, "proposer": {"enabled": False}}
    opchains.make_secrets()
    opchains.make_chain(double, components=disabled)
    async with family(double):
        await until(opchains.is_running)
        opchains.upgrade(**NEW)
        await until(opchains.is_running)
        assert {one: opchains.image(one) for one in NEW} == NEW
    await film.catch_up()
    geth = film.first("statefulsets", "chain-geth", partial(serves, NEW["geth"]))
    assert geth < film.first("deployments", "chain-node", partial(has_image, NEW["node"]))
    assert film.phases()[-3:] == ["Running", "Upgrading", "Running"]
