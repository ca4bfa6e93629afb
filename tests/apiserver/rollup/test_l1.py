"""L1 is asked who it is before anything starts, and whenever the configuration names another."""

from functools import partial
from time import monotonic as clock

import chains
from doubles.chain import ChainDouble
from pequod.controllers.rollup.observers import Pace
from rollups import Chains, Object, StartFamily
from waiting import eventually, until

NOBODY = "http://127.0.0.1:9/"
"""Where nothing listens."""
SELDOM = Pace(look=10.0, accounts=10.0, tell=10.0)
HEADS = "optimism_syncStatus"
"""What is asked once in every look."""


def l1_of(workload: Object) -> str:
    """The L1 that a program was told of."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    (found,) = [one for one in container["env"] if one["name"].endswith("_L1_ETH_RPC")]
    return str(found["value"])


async def test_an_l1_of_another_chain_is_refused_before_anything_starts(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    double.chain_id = 1
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "WrongL1")
        assert "L1 says that its chain id is 1, but spec.l1.chainId" in opchains.message("chain")
        assert opchains.chain_phase() == "Error"
        assert opchains.condition("chain", "ConfigurationValid")["status"] == "False"
        assert not opchains.has_graph()
        double.chain_id = chains.L1_CHAIN_ID
        await until(opchains.is_running)


async def test_an_l1_that_nobody_reaches_keeps_no_chain_from_starting_and_is_told(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, l1={"rpcUrl": NOBODY})
    async with family(double):
        await until(opchains.is_running)
    valid = opchains.condition("chain", "ConfigurationValid")
    assert valid["status"] == "True"
    assert "L1 has not told its chain id: 127.0.0.1 cannot be reached" in valid["message"]


async def test_an_l1_on_this_machine_is_not_asked_where_that_is_not_allowed(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double, allow_local=False):
        await until(lambda: opchains.is_there("batcher"))
        await until(lambda: "is not allowed" in opchains.message("chain", "GethReady"))
        assert opchains.says("Succeeded", kind="ConfigurationValid")
        assert "which is not allowed" in opchains.message("chain", "ConfigurationValid")
        assert opchains.chain_phase() == "Deploying"
    assert not double.asked


async def test_a_running_chain_gets_another_url_of_its_l1(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    moved = f"{double.l1}?by=another-way"
    async with family(double):
        await until(opchains.is_running)
        opchains.alter(l1={"rpcUrl": moved})
        await until(opchains.is_running)
        told = {one: l1_of(opchains.workload(one)) for one in ("node", "batcher", "proposer")}
        assert told == dict.fromkeys(told, moved)


async def test_a_running_chain_keeps_its_l1_when_the_new_one_is_of_another_chain(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    stranger = double.beside("stranger", chain_id=1)
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.alter(l1={"rpcUrl": stranger.l1})
        await until(lambda: opchains.reason("chain") == "WrongL1")
        asked = len(double.asked)
        await eventually(lambda: len(double.asked) > asked + 20, "the chain is looked at")
        assert opchains.reason("chain") == "WrongL1"
        assert opchains.chain_phase() == "Running"
        assert opchains.identities() == before
        opchains.alter(l1={"rpcUrl": double.l1})
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_a_refused_url_of_l1_does_not_have_a_chain_looked_at_without_end(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    """A look wakes a chain that is not well; a pass over it must not cause the next look."""
    stranger = double.beside("stranger", chain_id=1)
    double.balance = 0
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double, pace=SELDOM):
        await until(lambda: opchains.reason("chain") == "SignerFundsLow")
        opchains.alter(l1={"rpcUrl": stranger.l1})
        await until(lambda: opchains.reason("chain", "ConfigurationValid") != "Succeeded")
        asked, began = double.times("node", HEADS), clock()
        for number in range(5):
            opchains.make_chain(double, f"later-{number}")
            await until(partial(opchains.says, "SecretNotFound", f"later-{number}"))
        looks = double.times("node", HEADS) - asked
        assert looks <= 3 + 2 * (clock() - began) / (SELDOM.look / 5)
