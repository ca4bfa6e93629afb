"""What an operator and its API server have used so far, for `bench.graph`."""

import asyncio
import os
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from bench.idle import Operator, Requests
from bench.plane import PATIENCE, Plane, WrongError, cpu_seconds, memory, pin, say
from prometheus_client.parser import text_string_to_metric_families

from pequod.kube.client import Client
from pequod.kube.transport import Request

QUIET = 2.0
"""Seconds without a request after which the operator has done everything."""
LOOK = 0.25
"""Seconds between two looks."""
BUSY = 0.3
"""Of a core: above it the server and the controllers still have something to do."""
LEASE = "leases.coordination.k8s.io"
_SERVED = "apiserver_request_total"
_CONTROLLERS = "kube-controller-manager"

Served = Counter[tuple[str, str]]
"""Requests that the API server has answered, by verb and resource: everybody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Counters at a moment, or what was added to them in a while."""

    at: float
    operator: float
    """Processor time, in seconds."""
    server: float
    """The same of the API server and etcd."""
    controllers: float
    """The same of the controllers of Kubernetes."""
    client: float
    """The same of this program, which makes the graphs and watches them."""
    requests: Requests
    served: Served

    def since(self, before: "Used") -> "Used":
        """What was added."""
        return Used(
            at=self.at - before.at,
            operator=self.operator - before.operator,
            server=self.server - before.server,
            controllers=self.controllers - before.controllers,
            client=self.client - before.client,
            requests=self.requests - before.requests,
            served=self.served - before.served,
        )

    @property
    def asked(self) -> int:
        """The operator's requests, without the Lease."""
        return asked(self.requests)


def asked(requests: Requests) -> int:
    """How many requests there were, without those for the Lease."""
    return sum(count for (_, resource, _), count in requests.items() if resource != LEASE)


class Meter:
    """Looks at an operator and at its API server."""

    def __init__(self, plane: Plane, admin: Client, cores: set[int] | None) -> None:
        """`cores` are those that the operator is kept to."""
        self._plane = plane
        self._admin = admin
        self._cores = cores
        self.operator = Operator.of(plane)
        self._keep_to_cores()

    def _keep_to_cores(self) -> None:
        if self._cores:
            pin(self.operator.pid, self._cores)

    async def begin(self) -> Used:
        """Everything as it is, before something is measured."""
        # What this question costs the API server is not part of it.
        served = await self._served()
        return replace(await self._now(), served=served)

    async def used(self, before: Used) -> Used:
        """What was used since then."""
        now = await self._now()
        return replace(now, served=await self._served()).since(before)

    async def _now(self) -> Used:
        pids = {name: process.pid for name, process in self._plane.state.components.items()}
        if pids.get("operator") != self.operator.pid:
            raise WrongError("the operator did not live through the measurement")
        return Used(
            at=time.perf_counter(),
            operator=sum(cpu_seconds(pid) for pid in self._family()),
            server=self._plane.cpu(),
            controllers=cpu_seconds(pids[_CONTROLLERS]),
            client=time.process_time(),
            requests=await asyncio.to_thread(self.operator.requests),
            served=Counter(),
        )

    def _family(self) -> list[int]:
        """The operator and the processes that it has started."""
        pid = self.operator.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    async def _served(self) -> Served:
        answer = await self._admin.transport.send(Request(method="GET", path="/metrics"))
        lines = [line for line in answer.decode().splitlines() if line.startswith(_SERVED)]
        found: Served = Counter()
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                verb, resource = sample.labels["verb"], sample.labels["resource"]
                if resource and verb != "WATCH":
                    found[verb, resource] += int(sample.value)
        return found

    def resident(self) -> int:
        """Memory of the operator in bytes."""
        return sum(memory("VmRSS", pid) for pid in self._family())

    def peak(self) -> int:
        """The most that it was since `forget_peak`."""
        return sum(memory("VmHWM", pid) for pid in self._family())

    def forget_peak(self) -> None:
        """Begin anew with the peak."""
        Path(f"/proc/{self.operator.pid}/clear_refs").write_text("5")

    async def settled(self, doing: str) -> float:
        """Wait until nobody has anything left to do; the moment since when that was so."""
        began = told = time.perf_counter()
        before, busy, quiet_since = await self._deeds(), self._busy(), began
        while time.perf_counter() - quiet_since < QUIET:
            await asyncio.sleep(LOOK)
            now = time.perf_counter()
            count = await self._deeds()
            used = self._busy()
            if count != before or used - busy > BUSY * LOOK:
                quiet_since = now
            before, busy = count, used
            if now - told > 2 * QUIET:
                told = now
                say(f"{doing}: waiting for the end of all work, {now - began:.0f} s so far")
            if now - began > PATIENCE:
                raise WrongError(
                    f"{doing}: the operator or the control plane does not come to rest"
                )
        return quiet_since

    async def _deeds(self) -> int:
        requests = await asyncio.to_thread(self.operator.requests)
        return asked(requests) - sum(n for (verb, _, _), n in requests.items() if verb == "watch")

    def _busy(self) -> float:
        return self._plane.cpu() + cpu_seconds(self._plane.state.components[_CONTROLLERS].pid)

    async def restart(self) -> tuple[float, float]:
        """End the operator's process; when another one ran, and when that was ready (seconds)."""
        old, began = self.operator.pid, time.perf_counter()
        os.kill(old, signal.SIGTERM)
        while (new := self._successor(old)) is None:
            await self._patiently(began, "the operator was not started again")
        self.operator = new
        started = time.perf_counter() - began
        self._keep_to_cores()
        while not await asyncio.to_thread(self._answers_ready):
            await self._patiently(began, "the operator did not become ready again")
        return started, time.perf_counter() - began

    async def _patiently(self, began: float, problem: str) -> None:
        await asyncio.sleep(0.05)
        if time.perf_counter() - began > PATIENCE:
            raise WrongError(problem)

    def _successor(self, old: int) -> Operator | None:
        process = self._plane.state.components.get("operator")
        if process is None or process.pid == old:
            return None
        try:
            return Operator.of(self._plane)
        except (OSError, ValueError, KeyError):
            # Not yet what it is about to be.
            return None

    def _answers_ready(self) -> bool:
        words = Path(f"/proc/{self.operator.pid}/cmdline").read_text().split("\0")
        (address,) = (word for word in words if word.startswith("--health-address="))
        url = f"http://{address.partition('=')[2]}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    async def figures(self) -> dict[str, float]:
        """What the operator tells of itself, each figure summed over its labels."""
        return await asyncio.to_thread(_figures, self.operator.metrics)


def _figures(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        families = [*text_string_to_metric_families(answer.read().decode())]
    found: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found
