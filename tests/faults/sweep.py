"""Every fault at every write of a scenario.

`PEQUOD_FAULTS=all` sweeps every write, and `PEQUOD_FAULTS=update/409/6` replays one; without it, a
sample is taken, which `PEQUOD_FAULTS_SEED` repeats.
"""

import asyncio
import os
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web

from faultactions import answer, commit_then_drop, commit_then_stall, drop, stall
from faultproxy import Action, Exchange
from faults.runs import Budget, Player, Run
from faults.stage import Stage

AT_ONCE = 10
SAMPLE = 1
"""Writes of each fault in each scenario when not everything is swept."""
MOST = 80
"""Writes of a scenario, at most: a sweep that does not come to an end has found something."""
CHOICE = os.environ.get("PEQUOD_FAULTS", "")
EXHAUSTIVE = CHOICE == "all"
SEED = int(os.environ.get("PEQUOD_FAULTS_SEED") or secrets.randbelow(10**6))

MODIFIED = "Operation cannot be fulfilled: the object has been modified; please apply your changes"


def killing(stage: Stage, *, after: bool, hold: bool = False) -> Action:
    """Kill the operator before or after a write; whether the next one has to wait."""

    async def act(exchange: Exchange) -> web.StreamResponse:
        if after:
            async with exchange.forwarded():
                pass
        else:
            exchange.note(0)
        stage.kill(hold=hold)
        return exchange.drop()

    return act


@dataclass(frozen=True)
class Fault:
    """What happens to one write."""

    name: str
    action: Callable[[Stage], Action]
    budget: Budget = field(default_factory=Budget)
    kills: bool = False
    slow: bool = False
    """Whether it takes until a client loses its patience: a few such points are enough."""


_RESTART = Budget(more=16)
_LOST = Budget(ambiguous=True)

FAULTS = {
    one.name: one
    for one in (
        Fault("kill-before", partial(killing, after=False), _RESTART, kills=True),
        Fault("kill-after", partial(killing, after=True), _RESTART, kills=True),
        Fault("drop", lambda _: drop),
        Fault("commit-then-drop", lambda _: commit_then_drop, _LOST),
        Fault("409", lambda _: answer(409, MODIFIED, reason="Conflict")),
        Fault("429", lambda _: answer(429, reason="TooManyRequests", after=1)),
        Fault("500", lambda _: answer(500, "etcdserver: leader changed", reason="InternalError")),
        Fault("503", lambda _: answer(503, reason="ServiceUnavailable")),
        Fault("stall", lambda _: stall, slow=True),
        Fault("commit-then-stall", lambda _: commit_then_stall, _LOST, slow=True),
    )
}
KILLS = tuple(name for name, fault in FAULTS.items() if fault.kills)
QUICK = tuple(name for name, fault in FAULTS.items() if not fault.kills and not fault.slow)
SLOW = tuple(name for name, fault in FAULTS.items() if fault.slow)

Point = tuple[str, int]


class Sweep:
    """A scenario, and every fault in it."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self._ended: set[str] = set()
        """Faults for which there are no more writes."""

    async def of(self, faults: Sequence[str], replay: str) -> list[Run]:
        """Sweep some faults; `replay` is the command that repeats the test."""
        reference = await self.player.reference()
        runs: list[Run] = []
        for points in self._batches(faults, reference.writes):
            batch = [await self.player.fresh(fault, write) for fault, write in points]
            await self.player.prepared(batch)
            if any(FAULTS[run.fault].kills for run in batch):
                for run in batch:
                    await self._played(run)
            else:
                await asyncio.gather(*(self._played(run) for run in batch))
            self._ended |= {run.fault for run in batch if run.hit is None}
            runs += batch
        for name in faults:
            of_fault = [run for run in runs if run.fault == name]
            if of_fault:
                told = f"PEQUOD_FAULTS_SEED={SEED} {replay}"
                await self.player.conclude(of_fault, FAULTS[name].budget, told)
        assert not runs or any(run.hit for run in runs), "no fault has happened"
        return runs

    async def interrupted(self, replay: str) -> list[Run]:
        """Kill the operator around a write; the graph is deleted before the next one begins."""
        reference = await self.player.reference()
        runs: list[Run] = []
        for points in self._batches(KILLS, reference.writes):
            batch = [await self.player.fresh(fault, write) for fault, write in points]
            await self.player.prepared(batch)
            for run in batch:
                action = killing(self.player.stage, after=run.fault == "kill-after", hold=True)
                await self.player.interrupt(run, action)
            self._ended |= {run.fault for run in batch if run.hit is None}
            runs += batch
        self.player.require(runs, f"PEQUOD_FAULTS_SEED={SEED} {replay}")
        return runs

    async def _played(self, run: Run) -> None:
        await self.player.play(run, FAULTS[run.fault].action(self.player.stage))
        await self.player.judge(run)

    def _batches(self, faults: Sequence[str], writes: int) -> Iterator[list[Point]]:
        if EXHAUSTIVE and any(FAULTS[fault].slow for fault in faults):
            few = sorted({1, writes // 2, writes})
            yield [(fault, write) for fault in faults for write in few]
        elif EXHAUSTIVE:
            yield from self._all(faults)
        elif CHOICE:
            scenario, fault, write = CHOICE.split("/")
            if scenario == self.player.scenario.name and fault in faults:
                yield [(fault, int(write))]
        else:
            chance = random.Random(f"{SEED} {self.player.scenario.name}")
            yield [
                (fault, write)
                for fault in faults
                for write in sorted(chance.sample(range(1, writes + 1), SAMPLE))
            ]

    def _all(self, faults: Sequence[str]) -> Iterator[list[Point]]:
        """Every write of every fault, until there are no more."""
        for fault in faults:
            self._ended.discard(fault)
            for first in range(1, MOST, AT_ONCE):
                if fault not in self._ended:
                    yield [(fault, write) for write in range(first, first + AT_ONCE)]
            assert fault in self._ended, f"{fault}: more than {MOST} writes"
