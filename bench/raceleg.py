"""One contender, from its first instance to its last object; for `bench.race_kro`."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.floor import in_flight
from bench.graphload import Followed, followed
from bench.plane import WrongError, say
from bench.raceload import Drift, Repairs, until_gone, verify, wanted
from bench.racemeter import Meter, Used
from bench.racing import Contender, Stage

from pequod.kube.client import Exactly
from pequod.kube.kinds import NAMESPACES


@dataclass(slots=True, kw_only=True)
class Phase:
    """What making, or ending, all instances took."""

    seconds: float
    used: Used
    """Until everybody was at rest, without what an idle control plane uses."""
    others: float
    """Cores that strangers have used meanwhile."""

    @classmethod
    def of(cls, seconds: float, used: Used, idle: Used) -> "Phase":
        """A phase, from everything that was used."""
        others = used.others / used.seconds
        return cls(seconds=seconds, used=used.without(idle), others=others)


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one contender took."""

    created: Phase
    deleted: Phase
    repairs: Repairs
    peak: int
    """Memory in bytes, children included."""


@dataclass(slots=True, kw_only=True)
class Leg:
    """A contender's turn."""

    stage: Stage
    contender: Contender
    namespace: str
    idle: Used
    """Of an idle control plane."""
    instances: int
    edits: int
    names: list[str] = field(default_factory=list)

    async def run(self) -> Figures:
        """Everything that is measured."""
        self.names = [f"i-{index:05}" for index in range(self.instances)]
        await self.stage.admin.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.contender.prepare(self.stage, self.namespace)
        async with self._running() as meter, meter.watching_memory():
            created = await self._created(meter)
            repairs = await self._repaired(meter)
            deleted = await self._deleted(meter)
        return Figures(created=created, deleted=deleted, repairs=repairs, peak=meter.peak)

    def _say(self, what: str) -> None:
        say(f"{self.namespace}: {what}")

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[Meter]:
        self._say("starting the contender; the other one does not run")
        async with self.stage.running(self.contender, self.namespace) as pid:
            meter = Meter(self.stage.plane, self.stage.admin, pid)
            await meter.settled(f"{self.namespace}, before the start")
            yield meter

    @asynccontextmanager
    async def _followed(self) -> AsyncIterator[Followed]:
        contender = self.contender
        async with followed(
            self.stage.admin, self.namespace, contender.kind, contender.shape
        ) as seen:
            yield seen

    async def _created(self, meter: Meter) -> Phase:
        """All instances at once, until all are Ready."""
        self._say(f"{self.instances} instances are made")
        admin, kind = self.stage.admin, self.contender.kind
        bodies = {name: self.contender.instance(name, self.namespace) for name in self.names}

        async def create(name: str) -> None:
            await admin.create(kind, bodies[name])

        before = await meter.now()
        async with self._followed() as seen:
            began = time.perf_counter()
            await in_flight(create, self.names)
            took = await seen.until(self._all_ready, f"{self.namespace}, creation") - began
        await verify(admin, self.namespace, self.names)
        await meter.settled(f"{self.namespace}, all are Ready")
        used = await meter.since(before)
        if not used.own:
            raise WrongError("the API server has not counted what the contender asked for")
        return Phase.of(took, used, self.idle)

    def _all_ready(self, seen: Followed) -> bool:
        return len(seen.graphs) == self.instances == seen.ready

    async def _repaired(self, meter: Meter) -> Repairs:
        """Somebody else changes some objects."""
        self._say(f"{self.edits} objects are changed by somebody else")
        admin = self.stage.admin
        repairs = await Drift(admin, self.namespace, wanted(self.names)).run(self.edits)
        await meter.settled(f"{self.namespace}, after the drift")
        await verify(admin, self.namespace, self.names)
        return repairs

    async def _deleted(self, meter: Meter) -> Phase:
        """All instances at once, until they and their objects are gone."""
        self._say("everything is deleted")
        admin, kind = self.stage.admin, self.contender.kind
        async with self._followed() as seen:
            await seen.until(self._all_ready, f"{self.namespace}, the watch on the instances")
            uids = {name: one.metadata.uid for name, one in seen.graphs.items()}

            async def delete(name: str) -> None:
                await admin.delete(kind, name, Exactly(uids[name]), namespace=self.namespace)

            before = await meter.now()
            began = time.perf_counter()
            await in_flight(delete, self.names)
            gone = await seen.until(lambda now: not now.graphs, f"{self.namespace}, deletion")
        if await until_gone(admin, self.namespace):
            gone = time.perf_counter()
        await meter.settled(f"{self.namespace}, all are gone")
        used = await meter.since(before)
        return Phase.of(gone - began, used, self.idle)
