"""However the network behaves, two replicas never believe at the same moment that they lead."""

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from leases import Register
from pequod.kube.errors import UnreachableError
from pequod.runtime.leader import Leadership, Timing
from pequod.runtime.lease import Lease, Term
from virtualtime import run

TIMING = Timing(lease=15, renew=10, retry=2)


class BadWire:
    """Loses requests, loses answers, and takes its time, by the throw of a die."""

    def __init__(self, register: Register, chance: random.Random, trouble: float) -> None:
        self._register = register
        self._chance = chance
        self._trouble = trouble

    async def read(self) -> Lease | None:
        await self._travel()
        found = self._register.lease
        await self._travel()
        return found

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        await self._travel()
        written = self._register.put(term, over)
        await self._travel()
        return written

    async def _travel(self) -> None:
        await asyncio.sleep(self._chance.expovariate(5))
        if self._chance.random() < self._trouble:
            await asyncio.sleep(self._chance.uniform(0, 20))
            raise UnreachableError("lost on the way")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    trouble=st.floats(0, 0.6),
    replicas=st.integers(2, 4),
    restarts=st.booleans(),
)
def test_at_most_one_leads_at_any_moment(
    seed: int, trouble: float, replicas: int, *, restarts: bool
) -> None:
    async def main() -> None:
        chance = random.Random(seed)
        register = Register()
        alive: list[Leadership] = []

        async def live(number: int) -> None:
            life = 0
            while True:
                life += 1
                wire = BadWire(register, chance, trouble)
                one = Leadership(wire, identity=f"{number}-{life}", timing=TIMING)
                alive.append(one)
                try:
                    async with asyncio.timeout(chance.uniform(20, 200) if restarts else None):
                        while True:
                            await one.acquire()
                            await one.keep()
                except TimeoutError:
                    if chance.random() < 0.5:
                        await one.release()

        tasks = [asyncio.create_task(live(number)) for number in range(replicas)]
        for _ in range(4_000):
            await asyncio.sleep(0.25)
            leading = [one.identity for one in alive if one.leading]
            assert len(leading) <= 1, leading
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
