"""Every single fault at every write while a graph is made, changed and deleted.

The fault-free run says how it has to end: the same objects, the same status, no object deleted or
made twice that should not be, few writes more, and silence afterwards. The cases 1 to 5 are the
deaths of the operator, the cases 25 to 28 what happens to single writes.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pytest

from faults.runs import Player, Run
from faults.scenarios import SCENARIOS
from faults.stage import Stage
from faults.sweep import EXHAUSTIVE, KILLS, QUICK, SLOW, Sweep

Tell = Callable[[Iterable[Run]], None]

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def players(theatre: Stage) -> dict[str, Player]:
    """One for each scenario: what runs are compared with is found out once."""
    return {name: Player(theatre, scenario) for name, scenario in SCENARIOS.items()}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_cases_1_to_5_the_operator_dies_around_a_write(
    players: dict[str, Player], scenario: str, replay: str, tell: Tell
) -> None:
    tell(await Sweep(players[scenario]).of(KILLS, replay))


@pytest.mark.parametrize("scenario", ["create", "update"])
async def test_case_3_what_was_made_before_the_operator_died_goes_with_its_graph(
    players: dict[str, Player], scenario: str, replay: str, tell: Tell
) -> None:
    """The graph is deleted before the next operator begins: only the stored intent tells of it."""
    tell(await Sweep(players[scenario]).interrupted(replay))


async def test_cases_25_to_28_a_write_fails_or_its_answer_is_lost(
    players: dict[str, Player], replay: str, tell: Tell
) -> None:
    tell(await swept(players, QUICK, replay))


@pytest.mark.skipif(not EXHAUSTIVE, reason="takes the patience of a client: `make faults`")
async def test_case_28_a_write_is_not_answered(
    players: dict[str, Player], replay: str, tell: Tell
) -> None:
    tell(await swept(players, SLOW, replay))


async def swept(players: dict[str, Player], faults: Sequence[str], replay: str) -> list[Run]:
    """Sweep all scenarios at once."""
    sweeps = (Sweep(player).of(faults, replay) for player in players.values())
    return [run for runs in await asyncio.gather(*sweeps) for run in runs]
