"""An operator that starts anew finds a chain as it is, and leaves it so."""

from doubles.chain import ChainDouble
from rollups import Chains, Film, StartFamily
from waiting import until


async def test_a_chain_is_ready_again_after_the_operator_has_started_anew(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    before, height = opchains.identities(), opchains.height()
    async with family(double):
        await until(lambda: opchains.is_running() and opchains.height() > height)
    assert opchains.identities() == before


async def test_a_new_operator_takes_back_nothing_that_the_last_one_said_before_it_has_looked(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    began, height = int(opchains.get("chain")["metadata"]["resourceVersion"]), opchains.height()
    async with family(double):
        await until(lambda: opchains.is_running() and opchains.height() > height + 3)
    await film.catch_up()
    since = [one.object["status"] for one in film.of("opchains", "chain") if one.version > began]
    assert since
    assert {status["phase"] for status in since} == {"Running"}
    told = {
        (one["type"], one["status"], one["reason"])
        for status in since
        for one in status["conditions"]
    }
    assert {status for _, status, _ in told} == {"True"}, told
