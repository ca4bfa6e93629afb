"""Every single fault at every write while a Transform is made, changed, returned and deleted.

As for graphs made by hand, and in addition: the same revisions, the same Secrets beside the graph,
nothing of them made twice, and none left behind.
"""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from faults.runs import Player, Run
from faults.stage import Stage
from faults.sweep import CHOICE, KILLS, QUICK, Sweep
from faults.transforms import SCENARIOS

FEW = ("transform-update", "transform-rollback")
"""Where a death costs most; all of them are in `make faults`."""
Tell = Callable[[Iterable[Run]], None]

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def players(theatre: Stage) -> dict[str, Player]:
    """One for each scenario: what runs are compared with is found out once."""
    return {name: Player(theatre, scenario) for name, scenario in SCENARIOS.items()}


@pytest.mark.parametrize("scenario", SCENARIOS if CHOICE else FEW)
async def test_cases_1_to_5_the_operator_dies_around_a_write(
    players: dict[str, Player], scenario: str, replay: str, tell: Tell
) -> None:
    tell(await Sweep(players[scenario]).of(KILLS, replay))


async def test_cases_25_to_28_a_write_fails_or_its_answer_is_lost(
    players: dict[str, Player], replay: str, tell: Tell
) -> None:
    sweeps = (Sweep(player).of(QUICK, replay) for player in players.values())
    tell([run for runs in await asyncio.gather(*sweeps) for run in runs])
