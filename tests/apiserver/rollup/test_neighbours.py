"""Servers that hang, lie or talk nonsense harm nobody but the chain that they are of."""

from functools import partial
from typing import get_args

import pytest

from doubles.chain import ChainDouble, Mood
from pequod.controllers.rollup import judging, observers, opchain
from pequod.jsonrpc import client
from rollups import Chains, Film, StartFamily
from waiting import until

MOODS: tuple[Mood, ...] = tuple(mood for mood in get_args(Mood) if mood != "fine")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second instead of a minute until a silent chain counts as one."""
    monkeypatch.setattr(opchain, "BLOCK_WINDOW", 1.0)
    monkeypatch.setattr(opchain, "_BLOCKS", 0)
    monkeypatch.setattr(judging, "PATIENCE", 1.0)
    monkeypatch.setattr(client, "TIMEOUT", 0.5)


async def has_advanced(opchains: Chains, blocks: int = 3) -> None:
    """Wait until the chain that is well was reported to have got on."""
    height = opchains.height()
    await until(lambda: opchains.is_running() and opchains.height() > height + blocks)


def is_in_error(opchains: Chains, name: str) -> bool:
    return opchains.chain_phase(name) == "Error"


def put_into(mood: Mood, double: ChainDouble) -> None:
    for server in ("l1", "geth", "node", "engine"):
        setattr(double.moods, server, mood)


async def test_a_chain_is_reported_while_the_servers_of_all_others_turn_bad(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    bad = {mood: double.beside(mood) for mood in MOODS}
    opchains.make_secrets()
    opchains.make_chain(double)
    for mood, one in bad.items():
        opchains.make_secrets(mood)
        opchains.make_chain(one, mood)
    async with family(double):
        for name in ("chain", *bad):
            await until(partial(opchains.is_running, name))
        before = {name: opchains.identities(name=name) for name in bad}
        for mood, one in bad.items():
            put_into(mood, one)
        for name in bad:
            await until(partial(opchains.says, "NotAnswering", name, "GethReady"))
            await until(partial(opchains.says, "NotAnswering", name, "NodeReady"))
            await until(partial(is_in_error, opchains, name))
            assert not opchains.says("InternalError", name)
        await has_advanced(opchains)
        assert {name: opchains.identities(name=name) for name in bad} == before
        for one in bad.values():
            put_into("fine", one)
        for name in bad:
            await until(partial(opchains.is_running, name))


async def test_chains_start_beside_others_whose_servers_were_bad_from_the_beginning(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    bad = {mood: double.beside(mood) for mood in MOODS}
    for mood, one in bad.items():
        put_into(mood, one)
        opchains.make_secrets(mood)
        opchains.make_chain(one, mood)
    async with family(double):
        for name in bad:
            await until(partial(opchains.says, "Succeeded", name, "ConfigurationValid"))
            told = opchains.message(name, "ConfigurationValid")
            assert "L1 has not told its chain id" in told
        opchains.make_secrets()
        opchains.make_chain(double)
        await until(opchains.is_running)
        await has_advanced(opchains)
        assert {opchains.chain_phase(name) for name in bad} <= {"Deploying", "Error"}
        for one in bad.values():
            put_into("fine", one)
        for name in bad:
            await until(partial(opchains.is_running, name))


async def test_what_a_server_says_is_told_in_a_few_words(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    said: dict[Mood, str] = {
        "hangs": "did not answer",
        "garbage": "is not JSON-RPC",
        "broken": "answers 503",
        "endless": "is larger than 1 MiB",
        "redirects": "redirects, which is not followed",
        "lies": "gives no quantity",
    }
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        for mood, words in said.items():
            double.moods.geth = mood
            await until(partial(is_told, opchains, words))
        double.moods.geth = "fine"
        await until(opchains.is_running)


def is_told(opchains: Chains, words: str) -> bool:
    return words in opchains.message("chain", "GethReady")


async def test_a_chain_that_nobody_had_time_to_look_at_does_not_count_as_standing_still(
    family: StartFamily,
    opchains: Chains,
    double: ChainDouble,
    film: Film,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Silent servers take the turns of all others: that says nothing of the others' chains."""
    monkeypatch.setattr(observers, "AT_ONCE", 1)
    silent = {f"silent-{number}": double.beside(f"silent-{number}") for number in range(4)}
    opchains.make_secrets()
    opchains.make_chain(double)
    for name, one in silent.items():
        opchains.make_secrets(name)
        opchains.make_chain(one, name)
    async with family(double):
        for name in ("chain", *silent):
            await until(partial(opchains.is_running, name))
        began = int(opchains.get("chain")["metadata"]["resourceVersion"])
        for one in silent.values():
            put_into("hangs", one)
        for number in range(30):
            await looked_at(opchains, str(number))
    await film.catch_up()
    told = [one.object["status"] for one in film.of("opchains", "chain") if one.version > began]
    assert {status["phase"] for status in told} == {"Running"}


async def looked_at(opchains: Chains, request: str) -> None:
    """Have the operator reconcile the chain, whether or not its servers were asked meanwhile."""
    annotations = {"reconcile.pequod.io/requestedAt": request}
    opchains.patch("chain", {"metadata": {"annotations": annotations}})
    await until(lambda: opchains.status("chain").get("lastHandledReconcileAt") == request)
