"""What the ResourceGraph engine costs beside the least that any client can cost.

Many graphs at once: created until all are Ready, left in silence, the operator restarted, their
objects changed by somebody else, and everything deleted; against the rates of a Go program with
prebuilt requests (`loader/`) at the same API server, in the same run. Run it with
`python -m bench.graph`; `graphload.py` has the graphs.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from bench.floor import config_map, in_flight
from bench.graphdrift import WAYS, Drift, drift, percentile
from bench.graphload import (
    FEWEST_NODES,
    GRAPHS,
    Followed,
    followed,
    grant,
    graph,
    living,
    pieces,
    prepare,
    until_ready,
    verify,
)
from bench.graphmeter import Meter, Used, asked
from bench.graphtable import Table, Took
from bench.idle import EXPECTED, Requests
from bench.plane import (
    IN_FLIGHT,
    NAME,
    NAMESPACE,
    PATIENCE,
    Account,
    Plane,
    WrongError,
    build_loader,
    connected,
    control_plane,
    loader_apply,
    loader_command,
    loader_delete,
    make_account,
    measured,
    one_after_the_other,
    say,
)

from pequod.kube.client import Client, Exactly, Selection
from pequod.kube.kinds import CONFIG_MAPS

SHARE = 0.60
"""Of the loader's rate with the same objects: what we want to keep."""
PER_OBJECT = 1.4
"""Requests of the operator for each object that is created."""
PER_DRIFT = 2.0
REPAIRED = {20: 0.250, 100: 0.500}
"""Seconds in which nearly every change is undone, by changes per second."""
SILENT_CPU = 0.005
READS = frozenset({"get", "list", "watch", "read"})


@dataclass(frozen=True, slots=True)
class Floor:
    """What the loader takes for the same objects."""

    created: Took
    deleted: Took


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything that the phases need."""

    plane: Plane
    admin: Client
    account: Account
    loader: Path
    meter: Meter
    nodes: int
    silence: float


class Load:
    """One number of graphs, from the floor to their end."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self._count = count
        self._namespace = f"graphs-{count}"
        self._objects = count * bench.nodes
        self._names = [f"g-{index:05}" for index in range(count)]
        self.table = Table(count, bench.nodes)

    async def run(self) -> None:
        """Every phase, one after the other."""
        await self._config_maps()
        floor = await self._floor()
        await prepare(self._bench.admin, self._namespace)
        await self._settled("before the graphs")
        await self._created(floor.created)
        await self._silence()
        await self._restarted()
        for rate, within in REPAIRED.items():
            await self._drifted(rate, within)
        await self._deleted(floor.deleted)

    def _say(self, what: str) -> None:
        say(f"{self._count} graphs: {what}")

    async def _settled(self, doing: str) -> None:
        await self._bench.meter.settled(f"{self._count} graphs, {doing}")

    async def _verify(self) -> None:
        bench = self._bench
        await verify(bench.admin, self._namespace, self._names, bench.nodes)

    def _loading(self, prefix: str, count: int, what: Sequence[str]) -> list[str]:
        return [*loader_command(self._bench.loader, self._bench.account, prefix, count), *what]

    async def _config_maps(self) -> None:
        """The rates of ConfigMaps of one KB: nobody but the API server has to do with them."""
        self._say(f"the loader, {self._objects} ConfigMaps")
        prefix = f"floor-{self._count}"
        body = msgspec.json.encode(config_map(NAME, prefix, "a"))
        self.table.head(f"1 KB ConfigMaps by the loader, {IN_FLIGHT} in flight")
        for verb, what, left in (
            ("SSA create", loader_apply(body), self._objects),
            ("DELETE", loader_delete(), 0),
        ):
            command = self._loading(prefix, self._objects, what)
            figures = await measured(command, self._bench.plane)
            await self._check_config_maps(prefix, left)
            self.table.row(verb, f"{self._objects / figures.seconds:,.0f}/s")
            cpu = figures.server / self._objects * 1000
            self.table.row("  API server and etcd, for 1000", f"{cpu:.2f} s")

    async def _check_config_maps(self, prefix: str, count: int) -> None:
        chosen = Selection(namespace=NAMESPACE, labels=f"set={prefix}")
        found = await self._bench.admin.count(CONFIG_MAPS, chosen)
        if found != count:
            raise WrongError(f"the floor: {found} ConfigMaps instead of {count}")

    async def _floor(self) -> Floor:
        """What the graphs hold, made by the loader in no order; controllers of Kubernetes join in.

        A graph is Ready when its objects are; and everybody who has to do with them (controllers of
        Kubernetes make endpoints and addresses of Services) has come to rest some time later.
        """
        self._say(f"the floor, {self._objects} objects like those of the graphs")
        bench = self._bench
        templates = pieces(NAME, bench.nodes)
        applies, deletes = [], []
        for number, piece in enumerate(templates):
            piece.object["metadata"]["name"] = NAME
            body = msgspec.json.encode(piece.wanted)
            prefix = f"same-{number}"
            applies.append(self._loading(prefix, self._count, loader_apply(body, kind=piece.kind)))
            deletes.append(self._loading(prefix, self._count, loader_delete(piece.kind)))
        before = await bench.meter.begin()
        began = await one_after_the_other(applies)
        await until_ready(bench.admin, NAMESPACE, self._count)
        made = await self._took(before, began, "the floor is made")
        before = await bench.meter.begin()
        began = await one_after_the_other(deletes)
        gone = await self._took(before, began, "the floor is deleted")
        self.table.head(f"the floor: the same objects by the loader, {IN_FLIGHT} in flight")
        self.table.floor("created until they are ready", made)
        self.table.floor("deleted", gone)
        return Floor(made, gone)

    async def _took(self, before: Used, began: float, doing: str) -> Took:
        """What something took that has just come to its end, and until everybody was at rest."""
        ended = time.perf_counter()
        rest = max(await self._bench.meter.settled(f"{self._count} graphs, {doing}"), ended)
        used = await self._bench.meter.used(before)
        return Took(seconds=ended - began, rest=rest - began, server=used.server)

    async def _created(self, floor: Took) -> None:
        """All graphs at once, until all are Ready."""
        self._say("creating them")
        bench, table = self._bench, self.table
        graphs = {name: graph(name, self._namespace, bench.nodes) for name in self._names}

        async def create(name: str) -> None:
            await bench.admin.create(GRAPHS, graphs[name])

        bench.meter.forget_peak()
        before = await bench.meter.begin()
        async with followed(bench.admin, self._namespace) as seen:
            began = time.perf_counter()
            await in_flight(create, self._names)
            sent = time.perf_counter() - began
            half = await seen.until(lambda now: 2 * now.ready >= self._count, "creation") - began
            took = await seen.until(self._all_ready, "creation") - began
        rest = await bench.meter.settled(f"{self._count} graphs, all are Ready") - began
        used = await bench.meter.used(before)
        await self._verify()
        table.head("created at once, until all were Ready")
        table.row("sent by the client in", f"{sent:.2f} s")
        table.row("half of them Ready after", f"{half:.2f} s")
        table.beside(Took(seconds=took, rest=max(took, rest), server=used.server), floor, SHARE)
        table.per_object(used, "creation", PER_OBJECT)
        table.cpu(used)
        table.memory(bench.meter)
        table.requests(used.requests, self._objects, "object")

    def _all_ready(self, seen: Followed) -> bool:
        return len(seen.graphs) == self._count == seen.ready

    async def _silence(self) -> None:
        """Nothing happens, and nothing should be done."""
        bench, table = self._bench, self.table
        before = await bench.meter.begin()
        end = time.monotonic() + bench.silence
        while (left := end - time.monotonic()) > 0:
            self._say(f"silence, {left:.0f} s more")
            await asyncio.sleep(min(30.0, left))
        used = await bench.meter.used(before)
        others = sum(n for key, n in used.requests.items() if not _expected(*key[:2]))
        share = used.operator / used.at
        table.head(f"silence of {bench.silence:.0f} s")
        table.goal("requests but watches and the Lease", str(others), "0", reached=not others)
        reached = share < SILENT_CPU
        table.goal("CPU of a core, operator", f"{share:.2%}", "< 0.5 %", reached=reached)
        table.row("CPU of a core, API server and etcd", f"{used.server / used.at:.2%}")
        table.memory(bench.meter)
        table.requests(used.requests, used.at, "s")

    async def _restarted(self) -> None:
        """Another process of the operator, which has everything to learn and nothing to do."""
        self._say("restarting the operator")
        bench, table = self._bench, self.table
        began = time.perf_counter()
        started, ready = await bench.meter.restart()
        while not self._knows_everything(await bench.meter.figures()):
            await asyncio.sleep(0.1)
            if time.perf_counter() - began > PATIENCE:
                raise WrongError("the new operator did not look at every graph")
        known = time.perf_counter() - began
        await self._settled("after the restart")
        # Its counters began at nothing.
        used = await bench.meter.begin()
        await self._verify()
        written = Counter({key: n for key, n in used.requests.items() if key[0] not in READS})
        writes = asked(written)
        table.head("operator restarted")
        table.row("old process gone, new one started", f"{started:.2f} s")
        table.row("ready", f"{ready:.2f} s")
        table.row("every graph looked at", f"{known:.2f} s")
        table.goal("writes but the Lease", str(writes), "0", reached=not writes)
        table.row("reads, watches included", str(used.asked - writes))
        table.row("CPU, operator, start included", f"{used.operator:.2f} s")
        table.memory(bench.meter)
        table.requests(used.requests, self._objects, "object")

    def _knows_everything(self, figures: dict[str, float]) -> bool:
        return (
            figures.get("pequod_resources_managed", 0.0) == self._objects
            and figures.get("pequod_reconcile_total", 0.0) >= self._count
            and not figures.get("workqueue_depth", 1.0)
            and not figures.get("workqueue_unfinished_work_seconds", 1.0)
        )

    async def _drifted(self, rate: int, within: float) -> None:
        """Somebody else changes objects, and the operator undoes it."""
        self._say(f"drift, {rate} objects a second")
        bench, table = self._bench, self.table
        found = await living(bench.admin, self._namespace)
        edits = await drift(bench.admin, self._namespace, bench.nodes, found, rate=rate)
        before = await bench.meter.begin()
        await edits.run()
        await self._settled("after the drift")
        used = await bench.meter.used(before)
        await self._verify()
        number, times = len(edits.edits), edits.times()
        each, late = _writes(used.requests) / number, percentile(times, 0.99)
        table.head(f"drift: {number} objects changed by somebody else, {rate} a second")
        table.row("undone after, p50", f"{percentile(times, 0.5) * 1e3:.0f} ms")
        goal = f"<= {within * 1e3:.0f} ms"
        table.goal("undone after, p99", f"{late * 1e3:.0f} ms", goal, reached=late <= within)
        for way in WAYS:
            table.row(f"  {way}, p50 and most", _times(edits, way))
        reached = each <= PER_DRIFT
        table.goal("writes to the objects per change", f"{each:.2f}", "<= 2", reached=reached)
        table.row("requests of the operator per change", f"{used.asked / number:.2f}")
        table.row("CPU, operator", f"{used.operator / number * 1e3:.1f} ms/change")
        table.requests(used.requests, number, "change")

    async def _deleted(self, floor: Took) -> None:
        """All graphs at once, until they and their objects are gone."""
        self._say("deleting them")
        bench, table = self._bench, self.table
        async with followed(bench.admin, self._namespace) as seen:
            await seen.until(self._all_ready, "the watch on the graphs")
            uids = {name: one.metadata.uid for name, one in seen.graphs.items()}

            async def delete(name: str) -> None:
                exactly = Exactly(uids[name])
                await bench.admin.delete(GRAPHS, name, exactly, namespace=self._namespace)

            bench.meter.forget_peak()
            before = await bench.meter.begin()
            began = time.perf_counter()
            await in_flight(delete, self._names)
            took = await seen.until(lambda now: not now.graphs, "deletion") - began
        left = await living(bench.admin, self._namespace)
        if left:
            raise WrongError(f"the graphs are gone, and {len(left)} of their objects are not")
        rest = await bench.meter.settled(f"{self._count} graphs, all are gone") - began
        used = await bench.meter.used(before)
        table.head("deleted at once, until everything was gone")
        table.beside(Took(seconds=took, rest=max(took, rest), server=used.server), floor, SHARE)
        table.per_object(used, "deletion")
        table.cpu(used)
        table.memory(bench.meter)
        table.requests(used.requests, self._objects, "object")


def _times(edits: Drift, way: str) -> str:
    times = edits.times(way)
    return f"{percentile(times, 0.5) * 1e3:.0f}, {times[-1] * 1e3:.0f} ms" if times else "-"


def _writes(requests: Requests) -> int:
    """Writes to objects of graphs; events and statuses come on top."""
    return sum(number for (verb, _, _), number in requests.items() if verb == "apply")


def _expected(verb: str, resource: str) -> bool:
    return (verb, "") in EXPECTED or (verb, resource) in EXPECTED


async def _measure(plane: Plane, options: argparse.Namespace, cores: set[int] | None) -> None:
    async with connected(plane.layout.kubeconfig) as admin:
        account = await make_account(plane, admin)
        await grant(admin, NAMESPACE, NAMESPACE)
        bench = Bench(
            plane=plane,
            admin=admin,
            account=account,
            loader=await build_loader(),
            meter=Meter(plane, admin, cores),
            nodes=options.nodes,
            silence=options.silence,
        )
        for count in options.graphs:
            load = Load(bench, count)
            try:
                await load.run()
            finally:
                print(*load.table.lines, sep="\n", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, action="append", help="how many; repeatable")
    parser.add_argument("--silence", type=float, default=300.0, help="seconds")
    parser.add_argument("--nodes", type=int, default=10, help="nodes of each graph")
    parser.add_argument("--shared", action="store_true", help="let everybody use every core")
    options = parser.parse_args()
    options.graphs = options.graphs or [100, 300]
    if options.nodes < FEWEST_NODES:
        parser.error(f"a graph has {FEWEST_NODES} nodes at least")
    if len(set(options.graphs)) < len(options.graphs):
        parser.error("each number of graphs once")
    return options


def main() -> None:
    """Measure, and print a table for each number of graphs; only wrong results are a failure."""
    options = _options()
    first, *others = sorted(os.sched_getaffinity(0))
    cores = set(others) if others and not options.shared else None
    say("starting a control plane with an operator")
    try:
        with control_plane("--operator") as plane:
            if cores:
                plane.pin({first})
                os.sched_setaffinity(0, cores)
            where = "server and controllers on one core, operator and clients on the others"
            print(f"{where if cores else 'all share all cores'}; every object checked")
            asyncio.run(_measure(plane, options, cores))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
