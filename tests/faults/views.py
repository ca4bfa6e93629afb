"""What an operator is shown: lists from the past, and events that are lost, doubled or late."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from aiohttp import web

from faultactions import Feed, Gate, Snapshot
from faultproxy import Call, Exchange, Rule
from faults.oracles import NUDGE, RESOURCES
from faults.stage import Stage, in_thread
from graphs import API, Object
from pequod.graph.model import GRAPH_LABEL

GRAPHS = f"{API}/resourcegraphs"
CHILDREN = tuple(
    f"/apis/{resource}" if "/" in resource else f"/api/v1/{resource}" for resource in RESOURCES
)

Edit = Callable[[str, Object, bytes], list[bytes]]
"""From the kind of an event's object, the event, and its line to the lines that are sent."""


def snapshot(stage: Stage, *paths: str) -> Snapshot:
    """Lists of all namespaces as they are now."""
    taken = Snapshot()
    for path in paths:
        selector = "" if path == GRAPHS else GRAPH_LABEL
        query = f"?labelSelector={selector}" if selector else ""
        answer = stage.api.get(f"{path}{query}")
        assert answer.code == 200, answer.message
        taken.take(path, selector, answer.body)
    return taken


@asynccontextmanager
async def in_the_past(stage: Stage, past: Snapshot) -> AsyncIterator[Rule]:
    """Another operator begins, whose API server has stopped there; it catches up after the block.

    Yields the rule that serves the lists.
    """
    gate = Gate()
    async with stage.without_operator():
        lists = stage.proxy.rule(past.has, past.serve)
        follows = stage.proxy.rule(past.follows, gate.hold)
    try:
        await stage.ready()
        yield lists
    finally:
        lists.remove()
        follows.remove()
        gate.open()


class Feeds:
    """The events of graphs and of their objects, one feed for each kind."""

    def __init__(self) -> None:
        self.feeds = {path: Feed() for path in (GRAPHS, *CHILDREN)}
        self._edits: dict[str, Edit] = {}
        """By namespace."""
        for feed in self.feeds.values():
            feed.edit = self._edited

    def has(self, call: Call) -> bool:
        return call.follows and call.path in self.feeds

    async def act(self, exchange: Exchange) -> web.StreamResponse:
        return await self.feeds[exchange.call.path].act(exchange)

    @contextmanager
    def edited(self, namespace: str, edit: Edit) -> Iterator[None]:
        """Edit the events of a namespace during a block."""
        self._edits[namespace] = edit
        try:
            yield
        finally:
            del self._edits[namespace]

    @contextmanager
    def lagging(self, seconds: Callable[[], float]) -> Iterator[None]:
        """Let all events be late during a block."""
        for feed in self.feeds.values():
            feed.lag = seconds
        try:
            yield
        finally:
            for feed in self.feeds.values():
                feed.lag = lambda: 0.0

    def _edited(self, line: bytes) -> list[bytes]:
        event = json.loads(line)
        namespace = event["object"].get("metadata", {}).get("namespace", "")
        edit = self._edits.get(namespace)
        if edit is None or event["type"] == "BOOKMARK":
            return [line]
        return edit(event["object"]["kind"], event, line)


class Dropped:
    """Loses one event of a kind, counted from 1."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.number = number
        self.seen = 0
        self.lost = ""

    def edit(self, kind: str, event: Object, line: bytes) -> list[bytes]:
        if kind == self.kind:
            self.seen += 1
            if self.seen == self.number:
                self.lost = f"{event['type']} {kind}/{event['object']['metadata']['name']}"
                return []
        return [line]


class Withheld:
    """Keeps the events of a kind, to show only what was last."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.events: list[Object] = []

    def edit(self, kind: str, event: Object, line: bytes) -> list[bytes]:
        if kind != self.kind:
            return [line]
        self.events.append(event)
        return []

    @property
    def last(self) -> bytes:
        """The last state, as if it were a change of the first."""
        assert self.events, "nothing has happened"
        return json.dumps({**self.events[-1], "type": "MODIFIED"}).encode() + b"\n"


async def taken(stage: Stage, *paths: str) -> Snapshot:
    return await in_thread(partial(snapshot, stage, *paths))


async def nudged(stage: Stage, namespace: str, name: str, *, after: float) -> None:
    """Let something happen to a graph and to its objects, so that there is a next event."""
    number = 0
    while True:
        await asyncio.sleep(after)
        number += 1
        await in_thread(partial(_nudge, stage, namespace, name, str(number)))


def _nudge(stage: Stage, namespace: str, name: str, value: str) -> None:
    graph = f"{API}/namespaces/{namespace}/resourcegraphs/{name}"
    body = {"metadata": {"labels": {NUDGE: value}}}
    stage.api.patch(graph, body)
    for path in CHILDREN:
        root, _, plural = path.rpartition("/")
        place = f"{root}/namespaces/{namespace}/{plural}"
        found = stage.api.get(f"{place}?labelSelector={GRAPH_LABEL}").body.get("items", ())
        for one in found:
            stage.api.patch(f"{place}/{one['metadata']['name']}?fieldManager={NUDGE}", body)
