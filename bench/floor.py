"""What our client costs beside the least that any client can cost.

The same requests, made by a Go program with prebuilt bytes (`loader/`) and by `pequod.kube`, one
after the other against the same API server: operations per second, and the processor time of the
client and of the server. Run it with `python -m bench.floor`.
"""

import argparse
import asyncio
import importlib
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from bench.plane import (
    IN_FLIGHT,
    MIB,
    NAME,
    NAMESPACE,
    PATIENCE,
    WARM,
    Account,
    Figures,
    Plane,
    Stopwatch,
    WrongError,
    build_loader,
    connected,
    control_plane,
    loader_apply,
    loader_command,
    make_account,
    measured,
    released,
)

from pequod.kube.cache import Change, Projection
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.objects import Named, Object

SHARE = 0.85
"""Of the loader's operations per second: what we want to keep."""

SIDES = ("loader", "asyncio", *(("uvloop",) if importlib.util.find_spec("uvloop") else ()))
"""The floor first, then ours, once for each event loop that is there."""
WORKER = (sys.executable, "-m", "bench.floor", "--worker")

Operation = Literal["create", "no-op", "change", "dicts", "get", "list", "live"]
TITLES: dict[Operation, str] = {
    "create": "SSA create",
    "no-op": "SSA no-op",
    "change": "SSA change of one field",
    "dicts": "SSA change, ours from dicts",
    "get": "GET, ours decoded",
    "list": "WATCH, initial events",
    "live": "WATCH, live changes",
}
VARIANTS: dict[Operation, str] = {
    "create": "a",
    "no-op": "a",
    "change": "b",
    "dicts": "c",
    "live": "d",
}
"""The value of the one field that changes."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    operation: Operation
    kubeconfig: str
    prefix: str
    count: int
    uvloop: bool = False

    def names(self) -> list[str]:
        """The names of its objects."""
        return [f"{self.prefix}-{index:05}" for index in range(self.count)]


def config_map(name: str, prefix: str, variant: str) -> Object:
    """A ConfigMap of one KB."""
    data = {"value": variant, **{f"key-{index}": f"{index:x}" * 100 for index in range(7)}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"set": prefix}},
        "data": data,
    }


def worker(argument: str) -> None:
    """Do one job and print what it took."""
    job = msgspec.json.decode(argument, type=Job)
    factory = importlib.import_module("uvloop").new_event_loop if job.uvloop else None
    with asyncio.Runner(loop_factory=factory) as runner:
        print(msgspec.json.encode(runner.run(_work(job))).decode())


async def _work(job: Job) -> Figures:
    async with connected(Path(job.kubeconfig)) as client:

        async def read(name: str) -> None:
            await client.get(CONFIG_MAPS, name, namespace=NAMESPACE)

        await in_flight(read, [WARM] * 4 * IN_FLIGHT)
        if job.operation in {"list", "live"}:
            return await _follow(client, job)
        return await _send(client, job)


async def in_flight(call: Callable[[str], Awaitable[None]], items: Sequence[str]) -> None:
    """Make every call, a fixed number at a time."""
    rest = iter(items)

    async def some() -> None:
        for item in rest:
            await call(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(some())


async def _send(client: Client, job: Job) -> Figures:
    variant = VARIANTS.get(job.operation, "")
    objects = {name: config_map(name, job.prefix, variant) for name in job.names()}
    bodies = {name: msgspec.json.encode(object_) for name, object_ in objects.items()}

    async def get(name: str) -> None:
        found = await client.get(CONFIG_MAPS, name, namespace=NAMESPACE)
        assert found["metadata"]["name"] == name, "the answer is about something else"

    async def apply(name: str) -> None:
        await client.apply(CONFIG_MAPS, objects[name])

    async def apply_bytes(name: str) -> None:
        await client.apply_bytes(CONFIG_MAPS, name, bodies[name], namespace=NAMESPACE)

    call = {"get": get, "dicts": apply}.get(job.operation, apply_bytes)
    await released()
    watch = Stopwatch()
    await in_flight(call, job.names())
    return watch.figures()


async def _follow(client: Client, job: Job) -> Figures:
    """Keep a cache up to date until it has heard of every change."""
    done = asyncio.Event()
    times: list[float] = []

    def heard(change: Change[Named]) -> None:
        if (change.before is None) is (job.operation == "list"):
            times.append(time.perf_counter())
            if len(times) == job.count:
                done.set()

    caches = Caches(client)
    selection = Selection(namespace=NAMESPACE, labels=f"set={job.prefix}")
    if job.operation == "list":
        await released()
    watch = Stopwatch()
    cache = caches.share(CONFIG_MAPS, Projection(Named), selection).cache
    cache.listen(heard)
    if job.operation == "live":
        await cache.until_synced(PATIENCE)
        await released()
        watch = Stopwatch()
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    figures = watch.figures(since=times[0])
    await caches.close()
    return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything that a round needs."""

    plane: Plane
    admin: Client
    account: Account
    loader: Path
    count: int
    sides: tuple[str, ...]

    async def round(self, number: int) -> dict[tuple[Operation, str], Figures]:
        """Every operation once, by one side after the other."""
        return {
            (operation, side): await self._one(operation, side, f"{side}-{number}")
            for operation in TITLES
            for side in self.sides
        }

    async def _one(self, operation: Operation, side: str, prefix: str) -> Figures:
        before = await self._objects(prefix)
        command = await self._command(operation, side, prefix)
        figures = await measured(
            command, self.plane, (lambda: self._change(prefix)) if operation == "live" else None
        )
        self._check(operation, prefix, before, await self._objects(prefix))
        return figures

    async def _change(self, prefix: str) -> None:
        """Make the changes that both sides wait for."""
        body = msgspec.json.encode(config_map(NAME, prefix, VARIANTS["live"]))
        await measured([*self._loader(prefix), *loader_apply(body)], self.plane)

    async def _command(self, operation: Operation, side: str, prefix: str) -> list[str]:
        if side != "loader":
            job = Job(
                operation=operation,
                kubeconfig=str(self.account.kubeconfig),
                prefix=prefix,
                count=self.count,
                uvloop=side == "uvloop",
            )
            return [*WORKER, msgspec.json.encode(job).decode()]
        place = CONFIG_MAPS.path(namespace=NAMESPACE)
        query = f"{place}?watch=true&allowWatchBookmarks=true&labelSelector=set%3D{prefix}"
        match operation:
            case "get":
                return [*self._loader(prefix), f"-path={place}/{NAME}"]
            case "list":
                initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                return [*self._loader(prefix), "-watch=ADDED", f"-path={query}&{initial}"]
            case "live":
                version = (await self.admin.page(CONFIG_MAPS, limit=1)).metadata.resource_version
                since = f"resourceVersion={version}"
                return [*self._loader(prefix), "-watch=MODIFIED", f"-path={query}&{since}"]
        body = msgspec.json.encode(config_map(NAME, prefix, VARIANTS[operation]))
        return [*self._loader(prefix), *loader_apply(body)]

    def _loader(self, prefix: str) -> list[str]:
        return loader_command(self.loader, self.account, prefix, self.count)

    async def _objects(self, prefix: str) -> dict[str, Object]:
        chosen = Selection(namespace=NAMESPACE, labels=f"set={prefix}")
        found = await self.admin.list(CONFIG_MAPS, chosen)
        return {item["metadata"]["name"]: item for item in found}

    def _check(
        self,
        operation: Operation,
        prefix: str,
        before: dict[str, Object],
        after: dict[str, Object],
    ) -> None:
        """Compare every object with what the operation should have made of it."""
        wrote = operation in {"create", "change", "dicts", "live"}
        variant = VARIANTS.get(operation, "c")
        for index in range(self.count):
            name = f"{prefix}-{index:05}"
            old, new = _version(before.get(name)), _version(after.get(name))
            if not new or after[name]["data"] != config_map(name, prefix, variant)["data"]:
                raise WrongError(f"{operation}: {name} is not as it was applied")
            if (old != new) is not wrote:
                raise WrongError(f"{operation}: {name} went from version {old!r} to {new!r}")
        if len(after) != self.count:
            raise WrongError(f"{operation}: {len(after)} objects instead of {self.count}")


def _version(object_: Object | None) -> str:
    return "" if object_ is None else str(object_["metadata"]["resourceVersion"])


Rounds = list[dict[tuple[Operation, str], Figures]]


def _table(rounds: Rounds, sides: Sequence[str], count: int) -> Iterable[str]:
    """One row for an operation and a side of ours, beside the loader's figures."""
    yield (
        f"{'':28} {'':7} {'operations/s':^28} {'':>6}  {'client, CPU µs':^15}"
        f"  {'server, CPU µs':^15}  {'peak RSS, MiB':^14}  goals"
    )
    yield (
        f"{'operation':28} {'ours':7} {'loader':>14}{'ours':>14} {'ratio':>6}  {'loader':>7}"
        f" {'ours':>7}  {'loader':>7} {'ours':>7}  {'loader':>6} {'ours':>7}  CPU  rate"
    )
    for operation, title in TITLES.items():
        floor = _Row.of([one[operation, "loader"] for one in rounds], count)
        for side in sides[1:]:
            row = _Row.of([one[operation, side] for one in rounds], count)
            ratio = row.rate / floor.rate
            servers = f"{floor.server:7.0f} {row.server:7.0f}"
            goals = f"{_word(row.client < row.server):4} {_word(ratio >= SHARE)}"
            if operation == "live":
                servers, goals = f"{'-':>7} {'-':>7}", f"{'-':4} -"
            yield (
                f"{title:28} {side:7} {floor.speed:>14}{row.speed:>14} {ratio:6.2f}"
                f"  {floor.client:7.0f} {row.client:7.0f}  {servers}"
                f"  {floor.peak:6.0f} {row.peak:7.0f}  {goals}"
            )


@dataclass(frozen=True, slots=True)
class _Row:
    """The medians of one operation of one side; times are µs for each operation."""

    rate: float
    spread: float
    client: float
    server: float
    peak: float

    @classmethod
    def of(cls, runs: Sequence[Figures], count: int) -> "_Row":
        rates = [count / run.seconds for run in runs]
        rate = statistics.median(rates)
        return cls(
            rate=rate,
            spread=(max(rates) - min(rates)) / 2 / rate,
            client=statistics.median(run.cpu for run in runs) / count * 1e6,
            server=statistics.median(run.server for run in runs) / count * 1e6,
            peak=max(run.peak for run in runs) / MIB,
        )

    @property
    def speed(self) -> str:
        return f"{self.rate:,.0f} ±{self.spread:.0%}"


def _word(reached: bool) -> str:  # noqa: FBT001 -- a word for a boolean
    return "yes" if reached else "no"


async def _compare(plane: Plane, count: int, rounds: int) -> Rounds:
    async with connected(plane.layout.kubeconfig) as admin:
        bench = Bench(
            plane=plane,
            admin=admin,
            account=await make_account(plane, admin),
            loader=await build_loader(),
            count=count,
            sides=SIDES,
        )
        return [await bench.round(number) for number in range(rounds)]


def main() -> None:
    """Compare, and print the table; only wrong results are a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="operations of each kind")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shared", action="store_true", help="let everybody use every core")
    parser.add_argument("--worker", help="for this program itself")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    first, *others = sorted(os.sched_getaffinity(0))
    with control_plane() as plane:
        if others and not options.shared:
            plane.pin({first})
            os.sched_setaffinity(0, others)
        rounds = asyncio.run(_compare(plane, options.count, options.rounds))
    where = "all share all cores" if options.shared else "server on one core, clients on the others"
    print(f"{options.count} x 1 KB ConfigMaps, {IN_FLIGHT} in flight, HTTP/1.1 and TLS; {where};")
    print(f"medians of {options.rounds} interleaved rounds, ± half the range; every object checked")
    print(*_table(rounds, SIDES, options.count), sep="\n")
    print(f"goals: our client takes less CPU than API server and etcd (CPU); >= {SHARE:.0%} of the")
    print("loader's rate where the server is the bottleneck (rate). Live changes come at the pace")
    print("of a writer; the server's time would be that of the writes.")


if __name__ == "__main__":
    main()
