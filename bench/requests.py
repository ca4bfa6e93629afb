"""What single requests cost an API server: why custom resources are written as rarely as possible.

Each kind of request is sent for many objects at once, and the processor time of the API server and
etcd is divided by their number, without what an idle control plane uses; the requests take turns in
rounds. Run it with `python -m bench.requests`.
"""

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bench.floor import config_map, in_flight
from bench.graphload import GRAPHS, graph
from bench.plane import Plane, connected, control_plane, say
from bench.racepequod import MODULE, TRANSFORMS

from pequod.kube.client import Client, Exactly, Write
from pequod.kube.kinds import CONFIG_MAPS, EVENTS, NAMESPACES, SECRETS, Kind
from pequod.kube.objects import Object, micro_time

PLACE = "requests"
REST = 1.5
"""Seconds after which everybody has done what a request has led to."""
NODES = 10
STATUS = Write(part="status")


@dataclass
class Costs:
    """Sends requests, and keeps what they cost."""

    plane: Plane
    admin: Client
    names: list[str]
    idle: float = 0.0
    """Processor time of a second in which nobody asks for anything."""
    uids: dict[tuple[Kind, str], str] = field(default_factory=dict)
    found: dict[str, list[float]] = field(default_factory=dict)

    async def cost(self, what: str, send: Callable[[str], Awaitable[None]]) -> None:
        """Send a request for every name."""
        say(what)
        before, clock = self.plane.cpu(), asyncio.get_running_loop().time
        began = clock()
        await in_flight(send, self.names)
        await asyncio.sleep(REST)
        used = self.plane.cpu() - before - self.idle * (clock() - began)
        self.found.setdefault(what, []).append(used / len(self.names) * 1e3)

    async def create(self, kind: Kind, made: Object, *, apply: bool = False) -> None:
        """Make an object, and remember which one it is."""
        metadata = made["metadata"]
        metadata["namespace"] = PLACE
        make = self.admin.apply if apply else self.admin.create
        answer = await make(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **made})
        self.uids[kind, metadata["name"]] = answer["metadata"]["uid"]

    async def delete(self, kind: Kind, name: str) -> None:
        """Delete an object that was made here."""
        await self.admin.delete(kind, name, Exactly(self.uids[kind, name]), namespace=PLACE)

    async def patch(self, name: str, patch: Object, how: Write) -> None:
        """Patch a Transform."""
        await self.admin.patch(TRANSFORMS, name, patch, how, namespace=PLACE)


def _transform(name: str) -> Object:
    spec = {"cueRef": {"type": "inline", "ref": MODULE.read_text()}, "input": {"name": name}}
    return {"metadata": {"name": name}, "spec": spec}


def _status(phase: str) -> Object:
    condition = {
        "status": "True",
        "reason": "Succeeded",
        "message": "10 objects ready",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    types = ("Fetched", "Validated", "Rendered", "Executed", "Ready")
    conditions = [{"type": type_, **condition} for type_ in types]
    return {"status": {"phase": phase, "observedGeneration": 1, "conditions": conditions}}


def _graph(name: str) -> Object:
    made = graph(name, PLACE, NODES)
    del made["metadata"]["finalizers"]
    return made


def _event(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "eventTime": micro_time(),
        "reportingController": "bench",
        "reportingInstance": "bench",
        "action": "Reconcile",
        "reason": "Ready",
        "type": "Normal",
        "note": "10 objects ready",
        "regarding": {"kind": "Transform", "namespace": PLACE, "name": name},
    }


async def _round(costs: Costs) -> None:
    held = {"metadata": {"finalizers": ["pequod.io/bench"]}}
    free: Object = {"metadata": {"finalizers": None}}
    await costs.cost(
        "ConfigMap of 1 KB, apply",
        lambda name: costs.create(CONFIG_MAPS, config_map(name, PLACE, "a"), apply=True),
    )
    await costs.cost("ConfigMap of 1 KB, delete", lambda name: costs.delete(CONFIG_MAPS, name))
    await costs.cost(
        "Secret, create",
        lambda name: costs.create(SECRETS, {"metadata": {"name": name}, "stringData": {"a": "b"}}),
    )
    await costs.cost("Secret, delete", lambda name: costs.delete(SECRETS, name))
    await costs.cost("Event, create", lambda name: costs.create(EVENTS, _event(name)))
    await costs.cost("Event, delete", lambda name: costs.delete(EVENTS, name))
    await costs.cost("Transform, create", lambda name: costs.create(TRANSFORMS, _transform(name)))
    await costs.cost("Transform, finalizer", lambda name: costs.patch(name, held, Write()))
    await costs.cost(
        "Transform, first status", lambda name: costs.patch(name, _status("Executing"), STATUS)
    )
    await costs.cost(
        "Transform, next status", lambda name: costs.patch(name, _status("Ready"), STATUS)
    )
    await costs.cost("Transform, delete", lambda name: costs.delete(TRANSFORMS, name))
    await costs.cost("Transform, no finalizer", lambda name: costs.patch(name, free, Write()))
    await costs.cost("graph of ten nodes, create", lambda name: costs.create(GRAPHS, _graph(name)))
    await costs.cost("graph of ten nodes, delete", lambda name: costs.delete(GRAPHS, name))
    await costs.cost(
        "graph of ten nodes, apply", lambda name: costs.create(GRAPHS, _graph(name), apply=True)
    )
    await costs.cost("graph of ten nodes, delete", lambda name: costs.delete(GRAPHS, name))


async def _measure(plane: Plane, options: argparse.Namespace) -> None:
    async with connected(plane.layout.kubeconfig) as admin:
        await admin.create(NAMESPACES, {"metadata": {"name": PLACE}})
        costs = Costs(plane, admin, [f"one-{index:04}" for index in range(options.objects)])
        await asyncio.sleep(5)
        before = plane.cpu()
        await asyncio.sleep(10)
        costs.idle = (plane.cpu() - before) / 10
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            await _round(costs)
    print(f"{'CPU of API server and etcd, ms':34} {'median':>8} {'least':>8} {'most':>8}")
    for what, values in costs.found.items():
        middle, least, most = statistics.median(values), min(values), max(values)
        print(f"{what:34} {middle:8.2f} {least:8.2f} {most:8.2f}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    first, *others = sorted(os.sched_getaffinity(0))
    say("starting a control plane")
    try:
        with control_plane("--crds") as plane:
            if others:
                plane.pin({first})
                os.sched_setaffinity(0, others)
            asyncio.run(_measure(plane, options))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
