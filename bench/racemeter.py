"""What a contender and its API server have used, whoever it is; for `bench.race_kro`."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bench.plane import PATIENCE, Plane, WrongError, cpu_seconds, memory, say
from prometheus_client.parser import text_string_to_metric_families

from pequod.base.tasks import end
from pequod.kube.client import Client
from pequod.kube.transport import Request

QUIET = 4.0
"""Seconds of rest after which nothing more is to come: longer than kro's delay between passes."""
BUSY = 0.3
"""Of a core: above it somebody still has something to do."""
FLOW = "race"
"""The FlowSchema of both contenders: by it the API server counts what they ask for."""
_SERVED = "apiserver_request_total"
_DISPATCHED = "apiserver_flowcontrol_dispatched_requests_total"
_NUMBERS = ("seconds", "contender", "server", "controllers", "others", "own")

Served = Counter[tuple[str, str]]
"""Requests that the API server has answered, by verb and resource: everybody's, without watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Counters at a moment, or what was added to them in a while."""

    seconds: float
    contender: float
    """Processor time with all children, in seconds."""
    server: float
    """The same of the API server and etcd."""
    controllers: float
    """The same of the controllers of Kubernetes."""
    others: float
    """The same of everybody else on this machine, who disturbs the measurement."""
    own: float
    """Requests of the contender."""
    served: Served

    def since(self, before: "Used") -> "Used":
        """What was added."""
        return replace(self._less(before), served=self.served - before.served)

    def without(self, idle: "Used") -> "Used":
        """What was used beyond what an idle control plane uses in the same time."""
        share = self.seconds / idle.seconds
        served = Counter(
            {key: round(self.served[key] - share * idle.served[key]) for key in self.served}
        )
        return replace(self._less(idle, share), seconds=self.seconds, served=served)

    def _less(self, other: "Used", times: float = 1.0) -> "Used":
        numbers = {name: getattr(self, name) - times * getattr(other, name) for name in _NUMBERS}
        return replace(self, **numbers)


class Meter:
    """Looks at a control plane and at one process with its children."""

    def __init__(self, plane: Plane, admin: Client, pid: int | None = None) -> None:
        self._plane = plane
        self._admin = admin
        self._pid = pid
        self.peak = 0
        """The most memory in bytes, children included, since `watching_memory`."""

    async def now(self) -> Used:
        """Everything as it is."""
        own, served = await self._requests()
        contender, server, controllers = (
            self._contender(),
            self._plane.cpu(),
            self._controllers(),
        )
        known = contender + server + controllers + time.process_time()
        return Used(
            seconds=time.perf_counter(),
            contender=contender,
            server=server,
            controllers=controllers,
            others=_everything() - known,
            own=own,
            served=served,
        )

    async def since(self, before: Used) -> Used:
        """What was used since then."""
        return (await self.now()).since(before)

    async def _requests(self) -> tuple[int, Served]:
        answer = await self._admin.transport.send(Request(method="GET", path="/metrics"))
        wanted = (f"{_SERVED}{{", f"{_DISPATCHED}{{")
        lines = [line for line in answer.decode().splitlines() if line.startswith(wanted)]
        own, served = 0, Served()
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                labels = sample.labels
                if sample.name == _DISPATCHED:
                    own += int(sample.value) if labels["flow_schema"] == FLOW else 0
                elif labels["resource"] and labels["verb"] != "WATCH":
                    served[labels["verb"], labels["resource"]] += int(sample.value)
        return own, served

    def _contender(self) -> float:
        if self._pid is None:
            return 0.0
        return sum(_cpu_with_the_dead(pid) for pid in family(self._pid))

    def _controllers(self) -> float:
        return cpu_seconds(self._plane.state.components["kube-controller-manager"].pid)

    async def settled(self, doing: str) -> None:
        """Wait until nobody has anything left to do."""
        began = told = quiet_since = time.monotonic()
        busy = self._busy()
        while time.monotonic() - quiet_since < QUIET:
            await asyncio.sleep(0.5)
            now, used = time.monotonic(), self._busy()
            if used - busy > BUSY * 0.5:
                quiet_since = now
            busy = used
            if now - told > 5:
                told = now
                say(f"{doing}: waiting for the end of all work, {now - began:.0f} s so far")
            if now - began > PATIENCE:
                raise WrongError(f"{doing}: the work does not come to an end")

    def _busy(self) -> float:
        return self._plane.cpu() + self._controllers() + self._contender()

    @asynccontextmanager
    async def watching_memory(self) -> AsyncIterator[None]:
        """Keep `peak` for as long as the block lasts."""
        self.peak = 0
        task = asyncio.create_task(self._look())
        try:
            yield
        finally:
            await end(task)

    async def _look(self) -> None:
        assert self._pid is not None, "there is a contender to look at"
        while True:
            resident = 0
            for pid in family(self._pid):
                # One that has just ended has no memory any more.
                with suppress(OSError, ValueError):
                    resident += memory("VmRSS", pid)
            self.peak = max(self.peak, resident)
            await asyncio.sleep(0.1)


def family(pid: int) -> list[int]:
    """A process and everything that it has started, and that in turn."""
    members, rest = [], [pid]
    while rest:
        one = rest.pop()
        members.append(one)
        with suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                rest += map(int, (thread / "children").read_text().split())
    return members


def _everything() -> float:
    """Processor time of the whole machine that was not spent idle."""
    line, _, _ = Path("/proc/stat").read_text().partition("\n")
    user, nice, system, _idle, _waiting, *rest = map(int, line.split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _cpu_with_the_dead(pid: int) -> float:
    """Processor time of a process and of its children that have ended."""
    try:
        fields_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields_[11:15])) / os.sysconf("SC_CLK_TCK")
