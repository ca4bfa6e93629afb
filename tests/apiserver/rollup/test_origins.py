"""Where a chain begins cannot change under the data that is there."""

from functools import partial

import chains
from doubles.chain import ChainDouble
from rollups import Chains, StartFamily
from waiting import until

VOLUME = "chain-geth-data"
CLAIMS = "persistentvolumeclaims"


def another_genesis() -> tuple[object, object]:
    """Genesis and rollup of a chain that begins at another time."""
    later = chains.GENESIS_TIME + 60
    return (
        chains.changed(chains.genesis(), ".timestamp", hex(later)),
        chains.changed(chains.rollup(), ".genesis.l2_time", later),
    )


def put_another_genesis(opchains: Chains) -> None:
    genesis, rollup = another_genesis()
    opchains.put("genesis", genesis)
    opchains.put("rollup", rollup)


def put_the_genesis_back(opchains: Chains) -> None:
    opchains.put("genesis", chains.genesis())
    opchains.put("rollup", chains.rollup())


async def test_another_genesis_is_refused_under_existing_data_and_the_chain_keeps_running(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        put_another_genesis(opchains)
        await until(partial(opchains.says, "OriginChanged"))
        told = opchains.message("chain")
        assert f"PersistentVolumeClaim {VOLUME}" in told
        assert "Put the former files back" in told
        assert opchains.condition("chain", "Stalled")["status"] == "True"
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        assert opchains.chain_phase() == "Running"
        assert opchains.identities() == before
        put_the_genesis_back(opchains)
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_another_genesis_is_refused_by_an_operator_that_has_just_started(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    before = opchains.identities()
    put_another_genesis(opchains)
    async with family(double):
        await until(partial(opchains.says, "OriginChanged"))
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        assert opchains.chain_phase() == "Running"
        assert opchains.identities() == before


async def test_a_kept_volume_is_taken_over_by_the_same_chain_and_refused_to_another(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, deletionPolicy="Orphan")
    async with family(double):
        await until(opchains.is_running)
        volume = opchains.uid(CLAIMS, VOLUME)
        opchains.delete("chain")
        await until(lambda: not opchains.exists("chain"))
        assert opchains.uid(CLAIMS, VOLUME) == volume
        put_another_genesis(opchains)
        opchains.make_chain(double)
        await until(partial(opchains.says, "OriginChanged"))
        assert f"PersistentVolumeClaim {VOLUME}" in opchains.message("chain")
        assert opchains.chain_phase() == "Error"
        assert not opchains.has_graph()
        put_the_genesis_back(opchains)
        await until(opchains.is_running)
        assert opchains.uid(CLAIMS, VOLUME) == volume


async def test_a_volume_that_geth_left_when_it_was_disabled_is_not_used_for_another_chain(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, deletionPolicy="Orphan")
    async with family(double):
        await until(opchains.is_running)
        begins = opchains.live(CLAIMS, VOLUME)["metadata"]["annotations"]
        opchains.alter(components={"geth": {"enabled": False}})
        await until(lambda: not opchains.is_there("geth"))
        put_another_genesis(opchains)
        opchains.alter(components={"geth": {"enabled": True}})
        await until(partial(opchains.says, "OriginChanged"))
        assert not opchains.is_there("geth")
        kept = opchains.live(CLAIMS, VOLUME)["metadata"]["annotations"]
        assert kept["rollup.oplabs.io/origin"] == begins["rollup.oplabs.io/origin"]


async def test_disabling_geth_does_not_delete_the_data_of_the_chain(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        volume = opchains.uid(CLAIMS, VOLUME)
        opchains.alter(components={"geth": {"enabled": False}})
        await until(lambda: VOLUME in opchains.message("chain"))
        assert opchains.uid(CLAIMS, VOLUME) == volume
        opchains.alter(components={"geth": {"enabled": True}})
        await until(opchains.is_running)
        assert opchains.uid(CLAIMS, VOLUME) == volume


async def test_the_chain_id_of_the_rollup_cannot_be_edited(
    opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_chain(double)
    path = f"/apis/rollup.oplabs.io/v1alpha1/namespaces/{opchains.namespace}/opchains/chain"
    answer = opchains.api.patch(path, {"spec": {"l2": {"chainId": 778}}})
    assert answer.code == 422
    assert "immutable" in answer.message


async def test_a_volume_that_cannot_have_another_size_is_told_of_and_stays_as_it_is(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, components={"geth": {"storage": {"size": "10Gi"}}})
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.alter(components={"geth": {"storage": {"size": "5Gi"}}})
        await until(lambda: not opchains.is_ready("chain") and VOLUME in opchains.message("chain"))
        assert opchains.identities() == before
        opchains.alter(components={"geth": {"storage": {"size": "10Gi"}}})
        await until(opchains.is_running)
        assert opchains.identities() == before
