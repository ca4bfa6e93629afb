"""How a chain is doing: by what it does, not by whether its pods run."""

from functools import partial

import pytest

from doubles.chain import ETHER, ChainDouble
from pequod.controllers.rollup import judging, opchain
from rollups import Chains, Film, StartFamily
from waiting import eventually, until

BRIEF = {"stallWindow": "1s"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds instead of minutes until a chain counts as standing still."""
    monkeypatch.setattr(opchain, "BLOCK_WINDOW", 1.0)
    monkeypatch.setattr(opchain, "_BLOCKS", 0)
    monkeypatch.setattr(judging, "PATIENCE", 1.0)


async def some_looks(double: ChainDouble, questions: int = 60) -> None:
    """Wait while the chain is looked at again and again."""
    seen = len(double.asked)
    await eventually(lambda: len(double.asked) > seen + questions, "the chain is looked at")


async def test_heights_and_accounts_follow_the_chain(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        double.makes_blocks = False
        double.unsafe, double.safe, double.finalized = 5000, 4900, 4800
        double.balance, double.nonce = 207 * ETHER // 2, 42
        await until(lambda: opchains.component("node").get("finalizedHeight") == 4800)
        await until(lambda: opchains.component("batcher")["balance"] == "103.5 ETH")
        found = opchains.component("node")
        assert (found["unsafeHeight"], found["safeHeight"]) == (5000, 4900)
        await until(lambda: opchains.component("geth")["syncHeight"] == 5000)
        assert "42 transactions" in opchains.component("batcher")["message"]
        assert "lastBatchSubmission" in opchains.component("batcher")
        assert "lastProposal" in opchains.component("proposer")
        assert opchains.is_running()


async def test_a_chain_without_blocks_is_being_deployed_and_never_running(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    double.makes_blocks = False
    double.unsafe = double.safe = 7
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.height() == 7)
        await until(lambda: opchains.component("batcher").get("ready") is True)
        await some_looks(double)
        await film.catch_up()
        assert film.phases()[-1] == "Deploying"
        assert "Running" not in film.phases()
        assert opchains.says("Starting")
        assert "no new block yet" in opchains.message("chain", "NodeReady")
        double.makes_blocks = True
        await until(opchains.is_running)


async def test_heads_that_step_back_and_stay_there_are_no_progress(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    double.makes_blocks = False
    double.unsafe = double.safe = 100
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.height() == 100)
        double.unsafe = double.safe = 50
        await until(lambda: opchains.height() == 50)
        await some_looks(double)
        assert opchains.chain_phase() == "Deploying"


@pytest.mark.usefixtures("impatient")
async def test_a_chain_that_stops_making_blocks_is_in_error_until_it_goes_on(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        double.makes_blocks = False
        await until(partial(opchains.says, "UnsafeHeadStalled"))
        assert opchains.chain_phase() == "Error"
        assert opchains.says("UnsafeHeadStalled", kind="NodeReady")
        assert "see the log of chain-node" in opchains.message("chain")
        assert opchains.condition("chain", "GethReady")["status"] == "True"
        double.makes_blocks = True
        await until(opchains.is_running)
        assert opchains.identities() == before, "nothing is done about it"


async def test_blocks_whose_data_does_not_arrive_are_told_of_while_the_chain_runs(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, health=BRIEF)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        double.sends_batches = False
        await until(partial(opchains.says, "SafeHeadStalled", kind="BatcherReady"))
        assert opchains.chain_phase() == "Running"
        assert opchains.says("SafeHeadStalled")
        assert opchains.component("batcher")["ready"] is False
        assert opchains.component("node")["ready"] is True
        assert "see the log of chain-batcher-0" in opchains.message("chain")
        await until(lambda: "SafeHeadStalled" in {e["reason"] for e in opchains.events("chain")})
        double.sends_batches = True
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_a_safe_head_that_stands_still_is_known_to_the_next_operator(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double, health=BRIEF)
    async with family(double):
        await until(opchains.is_running)
        double.sends_batches = False
        await until(partial(opchains.says, "SafeHeadStalled", kind="BatcherReady"))
    opchains.alter(health={"stallWindow": "1h"})
    height = opchains.height()
    began = int(opchains.get("chain")["metadata"]["resourceVersion"])
    async with family(double):
        await until(lambda: opchains.height() > height + 3)
        await film.catch_up()
        later = [one.object for one in film.of("opchains", "chain") if one.version > began]
        assert {reason_of(one, "BatcherReady") for one in later} == {"SafeHeadStalled"}
        double.sends_batches = True
        await until(opchains.is_running)


def reason_of(chain: dict[str, object], kind: str) -> str:
    status = chain["status"]
    assert isinstance(status, dict)
    (found,) = [one for one in status["conditions"] if one["type"] == kind]
    return str(found["reason"])


async def test_a_safe_head_that_stands_still_is_not_forgotten_when_the_blocks_stop_as_well(
    family: StartFamily, opchains: Chains, double: ChainDouble, impatient: None
) -> None:
    del impatient
    opchains.make_secrets()
    opchains.make_chain(double, health=BRIEF)
    async with family(double):
        await until(opchains.is_running)
        double.sends_batches = False
        await until(partial(opchains.says, "SafeHeadStalled", kind="BatcherReady"))
        double.makes_blocks = False
        await until(partial(opchains.says, "UnsafeHeadStalled", kind="NodeReady"))
        await some_looks(double)
        assert opchains.says("SafeHeadStalled", kind="BatcherReady"), "no batch has arrived since"
        double.makes_blocks = double.sends_batches = True
        await until(opchains.is_running)


async def test_an_account_without_ether_is_told_of_until_it_has_some(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    double.balance = 0
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(partial(opchains.says, "SignerFundsLow", kind="BatcherReady"))
        await until(lambda: opchains.chain_phase() == "Running")
        assert opchains.says("SignerFundsLow", kind="ProposerReady")
        assert "it holds 0 ETH, which pays for next to nothing" in opchains.message("chain")
        assert opchains.component("batcher")["balance"] == "0 ETH"
        double.balance = 5 * ETHER
        await until(opchains.is_running)
        assert opchains.component("batcher")["balance"] == "5 ETH"


async def test_an_account_that_spends_too_fast_is_told_of_with_the_hours_that_are_left(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        double.burns = 5 * ETHER
        await until(partial(opchains.says, "SignerFundsLow", kind="BatcherReady"))
        told = opchains.message("chain", "BatcherReady")
        assert "at the rate of late (less than 24 h)" in told
        assert opchains.chain_phase() == "Running"
        double.burns = 0
        double.balance = 1_000_000 * ETHER
        await until(opchains.is_running)


async def test_a_jwt_that_geth_does_not_accept_is_told_of(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    double.makes_blocks = False
    double.moods.engine = "denies"
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(partial(opchains.says, "JwtMismatch", kind="NodeReady"))
        assert "op-geth does not accept the JWT" in opchains.message("chain")
        assert opchains.chain_phase() != "Running"
        double.moods.engine = "fine"
        double.makes_blocks = True
        await until(opchains.is_running)


async def test_a_geth_of_another_genesis_is_told_of(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    right, wrong = double.genesis_hash, f"0x{'ab' * 32}"
    double.genesis_hash = wrong
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(partial(opchains.says, "WrongGenesis", kind="GethReady"))
        told = opchains.message("chain")
        assert wrong in told
        assert right in told
        assert opchains.chain_phase() != "Running"
        assert opchains.component("geth")["ready"] is False
        double.genesis_hash = right
        await until(opchains.is_running)


@pytest.mark.usefixtures("impatient")
async def test_programs_that_fall_silent_are_told_of_one_by_one(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        double.moods.geth = "broken"
        await until(partial(opchains.says, "NotAnswering", kind="GethReady"))
        assert opchains.condition("chain", "NodeReady")["status"] == "True"
        assert "127.0.0.1 answers 503" in opchains.message("chain", "GethReady")
        double.moods.geth, double.moods.node = "fine", "broken"
        await until(partial(opchains.says, "NotAnswering", kind="NodeReady"))
        await until(lambda: opchains.condition("chain", "GethReady")["status"] == "True")
        assert opchains.chain_phase() == "Error"
        double.moods.node = "fine"
        await until(opchains.is_running)


async def test_a_short_silence_of_a_program_changes_nothing(
    family: StartFamily, opchains: Chains, double: ChainDouble, film: Film
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        began = int(opchains.get("chain")["metadata"]["resourceVersion"])
        double.moods.geth = double.moods.node = double.moods.l1 = "broken"
        await some_looks(double, 12)
        double.moods.geth = double.moods.node = double.moods.l1 = "fine"
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        await film.catch_up()
        later = [one.object for one in film.of("opchains", "chain") if one.version > began]
        assert {reason_of(one, "Ready") for one in later} == {"Succeeded"}
