"""The end of a chain: what sends goes first, what it reads from last, and data as it was asked."""

from functools import partial

from doubles.chain import ChainDouble
from rollups import Chains, Film, Object, StartFamily
from waiting import until

VOLUME = "chain-geth-data"
CLAIMS = "persistentvolumeclaims"
HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}
MADE = (
    *("pods", "services", "apps/v1/statefulsets", "apps/v1/deployments"),
    "platform.pequod.io/v1alpha1/resourcegraphs",
)


def is_going(object_: Object) -> bool:
    return "deletionTimestamp" in object_["metadata"]


def is_gone(opchains: Chains) -> bool:
    return not opchains.exists("chain")


def what_is_left(opchains: Chains) -> dict[str, list[str]]:
    """Everything that a chain had made, and that is still there."""
    found = {
        resource: [one["metadata"]["name"] for one in opchains.all(resource)]
        for resource in (*MADE, CLAIMS, "secrets", "configmaps")
    }
    own = {"genesis", "rollup", "jwt", "l1", "batcher-key", "proposer-key"}
    found["secrets"] = [one for one in found["secrets"] if one.removeprefix("chain-") not in own]
    found["configmaps"] = [one for one in found["configmaps"] if one != "kube-root-ca.crt"]
    return {resource: names for resource, names in found.items() if names}


async def test_programs_go_in_the_reverse_order_with_everything_that_was_made_for_them(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        (pod,) = opchains.pods("node")
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
        await until(lambda: not what_is_left(opchains))
    await film.catch_up()
    node = film.gone("deployments", "chain-node")
    for sender in ("chain-batcher", "chain-proposer"):
        assert film.gone("pods", f"{sender}-0") < film.first("deployments", "chain-node", is_going)
        assert film.gone("statefulsets", sender) < node
    geth = film.first("statefulsets", "chain-geth", is_going)
    assert film.gone("pods", pod["metadata"]["name"]) < geth
    assert node < film.gone("statefulsets", "chain-geth")
    assert film.most_pods("batcher") == 1
    assert opchains.find("secrets", "chain-batcher-key") is not None, "somebody else's"


async def test_the_node_stays_while_the_pod_of_the_batcher_is_on_its_way_out(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.delete("chain")
        await until(lambda: is_going(opchains.pods("batcher")[0]))
        await until(lambda: not opchains.is_there("proposer"))
        assert not is_going(opchains.workload("node"))
        assert not is_going(opchains.workload("geth"))
        assert opchains.says("Finalizing")
        opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
        await until(partial(is_gone, opchains))
    assert not what_is_left(opchains)


async def test_a_volume_is_kept_that_was_to_be_kept_from_the_beginning(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, deletionPolicy="Orphan")
    async with family(double):
        await until(opchains.is_running)
        volume = opchains.uid(CLAIMS, VOLUME)
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
    assert what_is_left(opchains) == {CLAIMS: [VOLUME]}
    assert opchains.uid(CLAIMS, VOLUME) == volume
    assert not is_going(opchains.live(CLAIMS, VOLUME))


async def test_a_volume_is_kept_when_that_is_asked_for_at_the_last_moment(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    opchains.alter(deletionPolicy="Orphan")
    opchains.delete("chain")
    async with family(double):
        await until(partial(is_gone, opchains))
    assert what_is_left(opchains) == {CLAIMS: [VOLUME]}


async def test_a_volume_is_kept_when_that_is_asked_for_while_the_configuration_is_invalid(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.put("jwt", "not a JWT")
        await until(partial(opchains.says, "InvalidConfiguration"))
        opchains.alter(deletionPolicy="Orphan")
        generation = opchains.get("chain")["metadata"]["generation"]
        await until(lambda: opchains.status("chain")["observedGeneration"] == generation)
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
    assert what_is_left(opchains) == {CLAIMS: [VOLUME]}


async def test_a_volume_is_kept_when_that_is_asked_for_while_the_chain_is_suspended(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.alter(suspend=True)
        await until(lambda: (opchains.graph_of() or {})["spec"].get("suspend") is True)
        opchains.alter(deletionPolicy="Orphan")
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
    assert what_is_left(opchains) == {CLAIMS: [VOLUME]}


async def test_a_chain_that_never_started_is_deleted_at_once(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_chain(double)
    async with family(double):
        await until(partial(opchains.says, "SecretNotFound"))
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
    assert not what_is_left(opchains)


async def test_a_chain_is_deleted_whatever_its_servers_do_and_its_secrets_hold(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        double.moods.l1 = double.moods.geth = double.moods.node = "hangs"
        opchains.remove("secrets", "chain-genesis")
        opchains.put("rollup", "not JSON")
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
    assert not what_is_left(opchains)


async def test_a_chain_is_deleted_in_the_middle_of_an_upgrade_by_an_operator_that_just_started(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.edit("pods", "chain-batcher-0", HOLD)
        opchains.upgrade(geth="op-geth:2")
        await until(lambda: opchains.replicas("batcher") == 0)
        opchains.delete("chain")
    opchains.edit("pods", "chain-batcher-0", {"metadata": {"finalizers": None}})
    async with family(double):
        await until(partial(is_gone, opchains))
    assert not what_is_left(opchains)
    await film.catch_up()
    assert film.gone("deployments", "chain-node") < film.gone("statefulsets", "chain-geth")


async def test_a_chain_of_the_same_name_begins_anew_after_its_volume_was_deleted(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets(but={"jwt"})
    opchains.make_chain(double, l2={"jwtSecret": None})
    async with family(double):
        await until(opchains.is_running)
        volume = opchains.uid(CLAIMS, VOLUME)
        opchains.delete("chain")
        await until(partial(is_gone, opchains))
        opchains.make_chain(double, l2={"jwtSecret": None})
        await until(opchains.is_running)
        assert opchains.uid(CLAIMS, VOLUME) != volume
        owner = opchains.live("secrets", "chain-jwt")["metadata"]["ownerReferences"][0]
        assert owner["uid"] == opchains.get("chain")["metadata"]["uid"]
