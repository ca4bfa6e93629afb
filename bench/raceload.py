"""What both contenders of a race are to make, and whether it is there; for `bench.race_kro`.

The objects are those of `graphload`, with what connects them written into them: a contender that
knows an order only by references gets the same objects. `race.cue` and `kro/definition.yaml` are
their sources; what is checked here knows neither.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from bench.graphdrift import FIELDS
from bench.graphload import DEPLOYMENTS, KINDS, Piece, contains, pieces
from bench.plane import PATIENCE, WrongError, say

from pequod.base.tasks import end
from pequod.kube.client import Client, Selection, Write
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.kube.objects import Named, Object, version_number
from pequod.kube.watch import Complete, Put, Watch

NODES = 10
NEVER = 20.0
"""Seconds after which a change counts as one that is never undone."""
_SOMEBODY = Write(manager="somebody")
_LAST_MAP = NODES - 6
_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER = {
    "resources": {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"memory": "64Mi"},
    },
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}

Place = tuple[Kind, str]


def wanted(names: Sequence[str]) -> dict[Place, Object]:
    """Every object of some instances, as it is to live."""
    return {
        (piece.kind, piece.object["metadata"]["name"]): _connected(name, piece)
        for name in names
        for piece in pieces(name, NODES)
    }


def _connected(name: str, piece: Piece) -> Object:
    """An object of a graph with references to those that come before it."""
    # What stands in a list does not say its kind.
    object_ = {key: part for key, part in piece.wanted.items() if key not in {"apiVersion", "kind"}}
    if piece.kind == CONFIG_MAPS and piece.depends_on:
        before = piece.depends_on[0].removeprefix("map-")
        return object_ | {"data": object_["data"] | {"after": f"{name}-{before}"}}
    if piece.kind == DEPLOYMENTS:
        pod = object_["spec"]["template"]["spec"]
        pod["securityContext"] = _POD
        origins = [{"configMapRef": {"name": f"{name}-{_LAST_MAP}"}}, {"secretRef": {"name": name}}]
        pod["containers"][0] |= _CONTAINER | {"envFrom": origins}
    return object_


async def found(admin: Client, namespace: str) -> dict[Place, Object]:
    """Every object in a namespace that says which instance it is of."""
    chosen = Selection(namespace=namespace, labels="app")
    return {
        (kind, object_["metadata"]["name"]): object_
        for kind in KINDS
        for object_ in await admin.list(kind, chosen)
    }


async def verify(admin: Client, namespace: str, names: Sequence[str]) -> None:
    """Compare the whole world with what was asked for."""
    asked, live = wanted(names), await found(admin, namespace)
    for place, object_ in asked.items():
        what = f"{place[0].kind} {namespace}/{place[1]}"
        if place not in live:
            raise WrongError(f"{what} is missing, and all is said to be Ready")
        if not contains(live[place], object_):
            raise WrongError(f"{what} is not as it was asked for, and all is said to be Ready")
    if more := live.keys() - asked.keys():
        kind, name = min(more, key=str)
        raise WrongError(f"nobody has asked for {kind.kind} {namespace}/{name}")


async def until_gone(admin: Client, namespace: str) -> bool:
    """Wait for the end of every object; whether there were any left to wait for."""
    began, waited = time.monotonic(), False
    while left := await found(admin, namespace):
        waited = True
        say(f"deletion: {len(left)} objects are left behind for now")
        await asyncio.sleep(0.2)
        if time.monotonic() - began > PATIENCE:
            raise WrongError(f"the instances are gone, and {len(left)} of their objects are not")
    return waited


@dataclass(slots=True)
class Repairs:
    """How long each change took to be undone."""

    times: list[float] = field(default_factory=list)
    never: int = 0


class Drift:
    """Somebody else who changes objects, one after the other."""

    def __init__(self, admin: Client, namespace: str, asked: Mapping[Place, Object]) -> None:
        self._admin = admin
        self._namespace = namespace
        self._asked = asked
        self._place: Place | None = None
        """Of the object that is changed now."""
        self._good: list[tuple[int, float]] = []
        """Its versions that are as they should be, and when they were heard of."""
        self._news = asyncio.Event()

    async def run(self, count: int) -> Repairs:
        """Change so many objects, chosen by lot and the same in each run."""
        places = sorted((place for place in self._asked if place[0] in FIELDS), key=str)
        repairs = Repairs()
        async with self._listening():
            for place in random.Random(count).sample(places, min(count, len(places))):
                took = await self._undone(place)
                if took is None:
                    repairs.never += 1
                    await self._undo(place)
                else:
                    repairs.times.append(took)
        repairs.times.sort()
        return repairs

    async def _undone(self, place: Place) -> float | None:
        """Change one object; seconds from the answer until it is as before, None for never."""
        kind, name = place
        self._place, self._good = place, []
        answer = await self._admin.patch(
            kind, name, FIELDS[kind], _SOMEBODY, namespace=self._namespace
        )
        answered = time.perf_counter()
        changed = msgspec.json.decode(answer, type=Named).metadata.resource_version
        since = version_number(changed) or 0
        while (left := answered + NEVER - time.perf_counter()) > 0:
            for version, at in self._good:
                if version > since:
                    return max(at - answered, 0.0)
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                break
        return None

    async def _undo(self, place: Place) -> None:
        kind, name = place
        say(f"drift: {kind.kind} {name} stays as somebody has left it; put right by hand")
        object_ = self._asked[place]
        await self._admin.patch(kind, name, object_, _SOMEBODY, namespace=self._namespace)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        ready = [asyncio.Event() for _ in FIELDS]
        watches = [
            asyncio.create_task(self._listen(kind, event))
            for kind, event in zip(FIELDS, ready, strict=True)
        ]
        try:
            await asyncio.gather(*(event.wait() for event in ready))
            yield
        finally:
            await end(*watches)

    async def _listen(self, kind: Kind, ready: asyncio.Event) -> None:
        watch = Watch(self._admin, kind, Selection(namespace=self._namespace))
        async with aclosing(watch.events()) as events:
            async for event in events:
                if isinstance(event, Complete):
                    ready.set()
                elif isinstance(event, Put):
                    self._heard(kind, event.raw)

    def _heard(self, kind: Kind, raw: bytes | msgspec.Raw) -> None:
        metadata = msgspec.json.decode(raw, type=Named).metadata
        place = (kind, metadata.name)
        if place == self._place and contains(msgspec.json.decode(raw), self._asked[place]):
            self._good.append((version_number(metadata.resource_version) or 0, time.perf_counter()))
            self._news.set()
