"""The graphs that `bench.graph` gives an operator, and what must have come of them."""

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec
from bench.floor import config_map
from bench.plane import ACCOUNTS, BINDINGS, PATIENCE, ROLES, WrongError, say

from pequod.api.platform import ResourceGraph
from pequod.base.tasks import end
from pequod.graph.kstatus import health
from pequod.graph.model import GRAPH_LABEL
from pequod.kube.client import Client, Selection
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, Kind
from pequod.kube.objects import Object
from pequod.kube.watch import Put, Removed, Watch

GRAPHS = Kind.of(ResourceGraph)
SERVICES = Kind("", "v1", "Service", "services")
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
KINDS = (ACCOUNTS, CONFIG_MAPS, SECRETS, SERVICES, DEPLOYMENTS)
FEWEST_NODES = 6
"""All nodes but the ConfigMaps, which make up the rest, and one of these."""

FINALIZER = "pequod.io/resourcegraph"
TENANT = "tenant"
PARTS = "parts"
"""The Secret with the sensitive part that all graphs of a namespace share."""
_PART = {"data": {"password": b64encode(b"correct horse battery staple").decode()}}
_KEY = "secret"
_VERBS = ["get", "list", "watch", "create", "patch", "delete"]


class Piece(NamedTuple):
    """One node, and the object that comes of it."""

    id: str
    kind: Kind
    object: Object
    """As the node has it."""
    depends_on: tuple[str, ...] = ()
    part: Object | None = None
    """What comes from the Secret."""

    @property
    def wanted(self) -> Object:
        """The object as it is to live."""
        return self.object | (self.part or {})


def pieces(name: str, nodes: int) -> list[Piece]:
    """An account, a chain of ConfigMaps, a Secret, two Services, and a Deployment at the end."""
    maps = nodes - FEWEST_NODES + 1
    chain = [
        Piece(
            f"map-{index}",
            CONFIG_MAPS,
            _object(CONFIG_MAPS, f"{name}-{index}", name) | {"data": _data(name)},
            (f"map-{index - 1}",) if index else (),
        )
        for index in range(maps)
    ]
    services = [
        Piece(id_, SERVICES, _object(SERVICES, f"{name}-{id_}", name) | {"spec": _service(name)})
        for id_ in ("public", "private")
    ]
    deployment = _object(DEPLOYMENTS, name, name) | {"spec": _deployment(name)}
    return [
        Piece("account", ACCOUNTS, _object(ACCOUNTS, name, name)),
        *chain,
        Piece("secret", SECRETS, _object(SECRETS, name, name), part=_PART),
        *services,
        Piece("deployment", DEPLOYMENTS, deployment, ("account", f"map-{maps - 1}", "secret")),
    ]


def _object(kind: Kind, name: str, app: str) -> Object:
    metadata = {"name": name, "labels": {"app": app}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _data(name: str) -> Object:
    """One KB, as in the ConfigMaps of the floor."""
    data: Object = config_map(name, name, "a")["data"]
    return data


def _service(name: str) -> Object:
    return {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]}


def _deployment(name: str) -> Object:
    container = {"name": "app", "image": "example.com/app:v1"}
    return {
        "replicas": 0,
        "minReadySeconds": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"serviceAccountName": name, "containers": [container]},
        },
    }


def graph(name: str, namespace: str, nodes: int) -> Object:
    """A graph as a front end writes it: its finalizer is there from the beginning."""
    return {
        "apiVersion": GRAPHS.api_version,
        "kind": GRAPHS.kind,
        "metadata": {"name": name, "namespace": namespace, "finalizers": [FINALIZER]},
        "spec": {
            "serviceAccountName": TENANT,
            "nodes": [_node(piece) for piece in pieces(name, nodes)],
        },
    }


def _node(piece: Piece) -> Object:
    node: Object = {"id": piece.id, "object": piece.object, "dependsOn": [*piece.depends_on]}
    if piece.part is not None:
        node["objectFrom"] = {"secretRef": {"name": PARTS, "key": _KEY}}
    return node


async def prepare(admin: Client, namespace: str) -> None:
    """Make a namespace, the account that graphs are executed for, and the sensitive part."""
    await admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    await admin.create(ACCOUNTS, {"metadata": {"name": TENANT, "namespace": namespace}})
    await grant(admin, namespace, TENANT)
    secret = {
        "metadata": {"name": PARTS, "namespace": namespace},
        "stringData": {_KEY: msgspec.json.encode(_PART).decode()},
    }
    await admin.create(SECRETS, secret)


async def grant(admin: Client, namespace: str, account: str) -> None:
    """Let an account do what the graphs need, in its namespace."""
    place = {"name": f"{account}-objects", "namespace": namespace}
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        groups.setdefault(kind.group, []).append(kind.plural)
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": _VERBS}
        for group, resources in groups.items()
    ]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": place["name"]}
    await admin.create(ROLES, {"metadata": place, "rules": rules})
    await admin.create(BINDINGS, {"metadata": place, "roleRef": role, "subjects": [subject]})


def contains(live: Any, wanted: Any) -> bool:  # noqa: ANN401 -- any JSON
    """Whether everything that is wanted is there, whatever else may be."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            name in live and contains(live[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(contains(one, other) for one, other in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


async def living(admin: Client, namespace: str) -> dict[tuple[Kind, str], Object]:
    """Every object in a namespace that carries the label of a graph."""
    chosen = Selection(namespace=namespace, labels=GRAPH_LABEL)
    return {
        (kind, object_["metadata"]["name"]): object_
        for kind in KINDS
        for object_ in await admin.list(kind, chosen)
    }


async def until_ready(admin: Client, namespace: str, count: int) -> float:
    """Wait until so many Deployments are what their controller makes of them; the seconds."""
    began, ready = time.perf_counter(), set[str]()
    watch = Watch(admin, DEPLOYMENTS, Selection(namespace=namespace))
    async with asyncio.timeout(PATIENCE), aclosing(watch.events()) as events:
        async for event in events:
            if isinstance(event, Put):
                found = msgspec.json.decode(event.raw)
                if health(found).state == "Current":
                    ready.add(found["metadata"]["name"])
            if len(ready) >= count:
                break
    return time.perf_counter() - began


async def verify(
    admin: Client, namespace: str, names: Collection[str], nodes: int
) -> dict[tuple[Kind, str], Object]:
    """Compare the whole world with what the graphs ask for; returns their objects."""
    graphs = await admin.list(GRAPHS, Selection(namespace=namespace))
    if {one["metadata"]["name"] for one in graphs} != set(names):
        raise WrongError(f"{len(graphs)} graphs instead of {len(names)}")
    found = await living(admin, namespace)
    wanted = set()
    for one in graphs:
        name, uid = one["metadata"]["name"], one["metadata"]["uid"]
        if not msgspec.convert(one, Graph).ready:
            raise WrongError(f"the graph {name} is not Ready: {one.get('status')}")
        if len(one["status"]["inventory"]) != nodes:
            raise WrongError(f"the inventory of {name} is not what was applied")
        for piece in pieces(name, nodes):
            key = (piece.kind, piece.object["metadata"]["name"])
            wanted.add(key)
            if key not in found:
                raise WrongError(f"{key[0].kind} {key[1]} is missing")
            if not is_as_wanted(found[key], piece.wanted, uid):
                raise WrongError(f"{key[0].kind} {key[1]} is not as it was asked for")
    if found.keys() != wanted:
        raise WrongError(f"{len(found)} objects instead of {len(wanted)}")
    return found


def is_as_wanted(live: Object, wanted: Object, graph_uid: str) -> bool:
    """Whether an object is what its node asks for, and the graph's."""
    # What stands in a list does not say its kind.
    rest = {name: value for name, value in wanted.items() if name not in {"apiVersion", "kind"}}
    labels = live["metadata"].get("labels") or {}
    return labels.get(GRAPH_LABEL) == graph_uid and contains(live, rest)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    uid: str
    generation: int


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    message: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a status."""

    observed_generation: int = -1
    conditions: tuple[_Condition, ...] = ()


class Graph(msgspec.Struct, frozen=True):
    """What is read of a graph, or of something else that says Ready in the same way."""

    metadata: _Metadata
    status: Status = Status()

    @property
    def ready(self) -> bool:
        """Whether it says that all of its present spec is there and healthy."""
        return self.status.observed_generation == self.metadata.generation and any(
            one.type == "Ready" and one.status == "True" for one in self.status.conditions
        )


class Followed:
    """The graphs of a namespace, or whatever else has their shape, as one watch tells of them."""

    def __init__(self, kind: Kind = GRAPHS, shape: type[Graph] = Graph) -> None:
        self._kind = kind
        self._shape = shape
        self.graphs: dict[str, Graph] = {}
        self.heard = 0.0
        """When the last change came."""
        self._ready: set[str] = set()
        self._news = asyncio.Event()

    @property
    def ready(self) -> int:
        """How many graphs are Ready."""
        return len(self._ready)

    async def run(self, watch: Watch) -> None:
        """Listen until cancelled."""
        async with aclosing(watch.events()) as events:
            async for event in events:
                if isinstance(event, (Put, Removed)):
                    found = msgspec.json.decode(event.raw, type=self._shape)
                    self._take(found, gone=isinstance(event, Removed))

    def _take(self, found: Graph, *, gone: bool) -> None:
        name = found.metadata.name
        self._ready.discard(name)
        if gone:
            self.graphs.pop(name, None)
        else:
            self.graphs[name] = found
            if found.ready:
                self._ready.add(name)
        self.heard = time.perf_counter()
        self._news.set()

    async def until(self, reached: Callable[["Followed"], bool], doing: str) -> float:
        """Wait for a state of the graphs; returns the moment when it was heard of."""
        began = told = time.monotonic()
        while not reached(self):
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 1.0)
            now = time.monotonic()
            if now - told > 2:
                told = now
                there = f"{len(self.graphs)} {self._kind.plural} are there"
                say(f"{doing}: {there}, {self.ready} of them Ready")
            if now - began > PATIENCE:
                raise WrongError(f"{doing} did not end; for example {self._laggard()}")
        return self.heard

    def _laggard(self) -> object:
        return next((graph for graph in self.graphs.values() if not graph.ready), None)


@asynccontextmanager
async def followed(
    client: Client, namespace: str, kind: Kind = GRAPHS, shape: type[Graph] = Graph
) -> AsyncIterator[Followed]:
    """A watch on the graphs of a namespace, for as long as the block lasts."""
    graphs = Followed(kind, shape)
    task = asyncio.create_task(graphs.run(Watch(client, kind, Selection(namespace=namespace))))
    try:
        yield graphs
    finally:
        await end(task)
