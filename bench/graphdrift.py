"""Changes that nobody asked for, and how long it takes until they are undone; for `bench.graph`."""

import asyncio
import math
import random
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec
from bench.graphload import (
    DEPLOYMENTS,
    GRAPHS,
    KINDS,
    SERVICES,
    is_as_wanted,
    pieces,
)
from bench.plane import WrongError, say

from pequod.base.tasks import end
from pequod.graph.model import GRAPH_LABEL
from pequod.kube.client import Client, Exactly, Selection, Write
from pequod.kube.kinds import CONFIG_MAPS, SECRETS, Kind
from pequod.kube.objects import Named, Object, version_number
from pequod.kube.watch import Complete, Put, Watch

EDITS = 100
LIMIT = 60.0
"""Seconds after which something that is not undone never will be."""
WAYS = ("field changed", "deleted", "our label removed", "label changed")
_SOMEBODY = Write(manager="somebody")
FIELDS: Mapping[Kind, Object] = {
    CONFIG_MAPS: {"data": {"value": "somebody's"}},
    SECRETS: {"data": {"password": "c29tZWJvZHkncw=="}},
    SERVICES: {"spec": {"selector": {"app": "somebody"}}},
    DEPLOYMENTS: {"spec": {"minReadySeconds": 7}},
}
"""What somebody else changes; an account has no field of its own that could be changed."""
_LABELS: tuple[Object, ...] = ({GRAPH_LABEL: "somebody"}, {"app": "somebody"})
"""A changed label is ours every second time, and one of the object's own otherwise."""

Place = tuple[Kind, str]


@dataclass(slots=True, kw_only=True)
class Edit:
    """One change of one object, and what is heard of the object afterwards."""

    way: str
    kind: Kind
    name: str
    uid: str
    wanted: Object
    graph: str
    number: int
    sent: bool = False
    answered: float | None = None
    version: int = 0
    """Of the object after the edit: only what comes later can have undone it."""
    good: list[tuple[int, float]] = field(default_factory=list)
    """Versions of the object that were as they should be, and when they were heard of."""

    def heard(self, live: Object) -> None:
        """Take note of the object as a watch shows it."""
        if not self.sent or not is_as_wanted(live, self.wanted, self.graph):
            return
        metadata = live["metadata"]
        if self.way != "deleted" or metadata["uid"] != self.uid:
            self.good.append((version_number(metadata["resourceVersion"]) or 0, _now()))

    @property
    def took(self) -> float | None:
        """Seconds from the answer to the edit until it was undone; None when it is not."""
        if self.answered is None:
            return None
        later = [at for version, at in self.good if version > self.version]
        return max(later[0] - self.answered, 0.0) if later else None

    async def make(self, client: Client, namespace: str) -> None:
        """Change the object."""
        self.sent = True
        if self.way == "deleted":
            await client.delete(self.kind, self.name, Exactly(self.uid), namespace=namespace)
        else:
            answer = await client.patch(
                self.kind, self.name, self._patch(), _SOMEBODY, namespace=namespace
            )
            found = msgspec.json.decode(answer, type=Named)
            self.version = version_number(found.metadata.resource_version) or 0
        self.answered = _now()

    def _patch(self) -> Object:
        match self.way:
            case "field changed":
                return FIELDS[self.kind]
            case "our label removed":
                return {"metadata": {"labels": {GRAPH_LABEL: None}}}
        return {"metadata": {"labels": _LABELS[self.number // len(WAYS) % len(_LABELS)]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Edits of objects of graphs."""

    client: Client
    namespace: str
    edits: Mapping[Place, Edit]
    rate: float
    """Edits per second."""

    async def run(self) -> None:
        """Make every edit at its time, and wait until each is undone."""
        ready = [asyncio.Event() for _ in KINDS]
        watches = [
            asyncio.create_task(self._listen(kind, event))
            for kind, event in zip(KINDS, ready, strict=True)
        ]
        try:
            await asyncio.gather(*(event.wait() for event in ready))
            await self._edit()
            await self._until_undone()
        finally:
            await end(*watches)

    async def _listen(self, kind: Kind, ready: asyncio.Event) -> None:
        """Everything in the namespace: an object without our label is one of ours all the same."""
        watch = Watch(self.client, kind, Selection(namespace=self.namespace))
        async with aclosing(watch.events()) as events:
            async for event in events:
                if isinstance(event, Complete):
                    ready.set()
                elif isinstance(event, Put):
                    name = msgspec.json.decode(event.raw, type=Named).metadata.name
                    if edit := self.edits.get((kind, name)):
                        edit.heard(msgspec.json.decode(event.raw))

    async def _edit(self) -> None:
        began = _now()
        async with asyncio.TaskGroup() as group:
            for number, edit in enumerate(self.edits.values()):
                await asyncio.sleep(max(began + number / self.rate - _now(), 0.0))
                group.create_task(edit.make(self.client, self.namespace))

    async def _until_undone(self) -> None:
        began = told = _now()
        while open_ := [edit for edit in self.edits.values() if edit.took is None]:
            await asyncio.sleep(0.05)
            if _now() - told > 2:
                told = _now()
                say(f"drift: {len(open_)} of {len(self.edits)} edits are not undone yet")
            if _now() - began > LIMIT:
                first = open_[0]
                what = f"{first.kind.kind} {first.name}, {first.way}"
                raise WrongError(f"{len(open_)} edits were not undone; for example {what}")

    def times(self, way: str | None = None) -> list[float]:
        """How long it took to undo the edits of a way, or of all."""
        edits = [edit for edit in self.edits.values() if way in {None, edit.way}]
        return sorted(edit.took for edit in edits if edit.took is not None)


async def drift(
    client: Client, namespace: str, nodes: int, found: Mapping[Place, Object], *, rate: float
) -> Drift:
    """Edits of objects of the graphs of a namespace, chosen by lot and the same in each run."""
    graphs = await client.list(GRAPHS, Selection(namespace=namespace))
    objects = [
        (piece.kind, piece.object["metadata"]["name"], piece.wanted, one["metadata"]["uid"])
        for one in graphs
        for piece in pieces(one["metadata"]["name"], nodes)
        if piece.kind in FIELDS
    ]
    random.Random(rate).shuffle(objects)
    edits = [
        Edit(
            way=WAYS[number % len(WAYS)],
            kind=kind,
            name=name,
            uid=found[kind, name]["metadata"]["uid"],
            wanted=wanted,
            graph=graph,
            number=number,
        )
        for number, (kind, name, wanted, graph) in enumerate(objects[:EDITS])
    ]
    return Drift(
        client=client,
        namespace=namespace,
        edits={(edit.kind, edit.name): edit for edit in edits},
        rate=rate,
    )


def percentile(values: list[float], share: float) -> float:
    """The value that a share of the sorted values does not exceed."""
    return values[max(0, math.ceil(len(values) * share) - 1)]


def _now() -> float:
    return time.perf_counter()
