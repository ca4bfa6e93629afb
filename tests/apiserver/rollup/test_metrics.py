"""What is measured of chains: while they are there, and no longer."""

from functools import partial

import prometheus_client

from doubles.chain import ChainDouble
from rollups import Chains, StartFamily
from waiting import until

CHAIN = {
    *(f"pequod_opchain_{name}_height" for name in ("geth", "unsafe", "safe", "finalized")),
    "pequod_opchain_safe_head_still_seconds",
}
ACCOUNT = {"pequod_opchain_signer_balance_ether", "pequod_opchain_signer_hours_left"}


def measured(opchains: Chains, name: str = "chain") -> dict[tuple[str, str], float]:
    """Everything that is measured of a chain, by name and program."""
    return {
        (sample.name, sample.labels.get("component", "")): sample.value
        for metric in prometheus_client.REGISTRY.collect()
        if metric.name.startswith("pequod_opchain_")
        for sample in metric.samples
        if (sample.labels.get("namespace"), sample.labels.get("name")) == (opchains.namespace, name)
    }


def height(opchains: Chains) -> float:
    return measured(opchains).get(("pequod_opchain_unsafe_height", ""), -1.0)


async def test_a_chain_is_measured_until_it_is_deleted(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    opchains.make_secrets("other")
    opchains.make_chain(double.beside("other"), "other")
    async with family(double):
        await until(opchains.is_running)
        await until(partial(opchains.is_running, "other"))
        found = measured(opchains)
        assert {name for name, component in found if not component} == CHAIN
        assert {name for name, component in found if component == "batcher"} == ACCOUNT
        assert {name for name, component in found if component == "proposer"} == ACCOUNT
        assert found["pequod_opchain_signer_balance_ether", "batcher"] == 100.0
        before = height(opchains)
        await until(lambda: height(opchains) > before)
        opchains.delete("chain")
        await until(lambda: not opchains.exists("chain"))
        await until(lambda: not measured(opchains))
        assert measured(opchains, "other")


async def test_an_account_is_measured_only_while_its_program_is_asked_for(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        opchains.alter(components={"proposer": {"enabled": False}})
        await until(opchains.is_running)
        before = height(opchains)
        await until(lambda: height(opchains) > before)
        assert {component for _, component in measured(opchains)} == {"", "batcher"}


async def test_an_operator_that_does_not_lead_any_more_measures_nothing(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        assert measured(opchains)
    assert not measured(opchains)
