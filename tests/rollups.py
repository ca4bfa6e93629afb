"""OPChains for tests: compiled and executed by the real controllers in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import msgspec

import chains
from doubles.chain import ChainDouble
from graphs import OPERATOR_NAMESPACE, Graphs, Journal, JournalledTransport, closing
from pequod.api.rollup import OPChain
from pequod.base.backoff import Backoff
from pequod.base.tasks import end
from pequod.controllers.platform.resourcegraph import Rules
from pequod.controllers.platform.wiring import PlatformSettings, platform
from pequod.controllers.rollup.components.chain import COMPONENTS
from pequod.controllers.rollup.observers import Pace
from pequod.controllers.rollup.wiring import RollupSettings, rollup
from pequod.kube.addresses import AddressRule, CheckedResolver
from pequod.kube.auth import Access
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.clusters import Clusters
from pequod.kube.kinds import PODS, Kind
from pequod.kube.transport import Transport
from pequod.kube.watch import Put, Removed, Watch
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from waiting import eventually

API = "/apis/rollup.oplabs.io/v1alpha1"
KEY = b"k" * 32
QUICK = Pace(look=0.5, accounts=0.5, tell=0.5)
WORKLOADS = {
    "geth": "apps/v1/statefulsets",
    "node": "apps/v1/deployments",
    "batcher": "apps/v1/statefulsets",
    "proposer": "apps/v1/statefulsets",
}
Object = dict[str, Any]


@dataclass
class Family:
    """The running controllers, and what they ask for."""

    journal: Journal


class StartFamily(Protocol):
    """Runs the controllers until the block ends."""

    def __call__(
        self, double: ChainDouble, *, pace: Pace = ..., allow_local: bool = ...
    ) -> AbstractAsyncContextManager[Family]: ...


@asynccontextmanager
async def running(
    access: Access, namespace: str, double: ChainDouble, *, pace: Pace, allow_local: bool
) -> AsyncIterator[Family]:
    """The controllers of one namespace, under the operator's account."""
    transport = JournalledTransport(access)
    transport.journal = journal = Journal()
    caches = Caches(Client(transport))
    recorder = Recorder(caches.client, instance="test")
    rule = AddressRule(allow_local=True)
    clusters = Clusters(fence=None, resolver=lambda: CheckedResolver(rule))
    rules = Rules(namespace=OPERATOR_NAMESPACE, account="pequod-operator")
    settings = RollupSettings(rpc=double.template, allow_local=allow_local, pace=pace)
    graphs = platform(
        caches,
        clusters,
        recorder,
        key=KEY,
        rendering=None,
        settings=PlatformSettings(rules=rules),
    )
    async with (
        closing(transport, caches, clusters),
        graphs as reconcilers,
        rollup(caches, key=KEY, settings=settings) as opchains,
    ):
        controllers = [
            Controller(
                one,
                caches,
                recorder,
                selection=Selection(namespace=namespace),
                backoff=Backoff(first=0.05, limit=1.0),
            )
            for one in (*reconcilers, opchains)
        ]
        tasks = [asyncio.create_task(one.run()) for one in controllers]
        tasks.append(asyncio.create_task(recorder.run()))
        try:
            yield Family(journal)
            assert not any(task.done() for task in tasks), "a controller ended by itself"
        finally:
            await end(*tasks)


class Chains(Graphs):
    """The OPChains of one namespace, with their graphs and everything else in it."""

    def __init__(self, graphs: Graphs) -> None:
        super().__init__(graphs.api, graphs.namespace, graphs.as_operator)
        self.graphs = graphs
        self._path = f"{API}/namespaces/{self.namespace}/opchains"

    def make_secrets(self, chain: str = "chain", *, but: Collection[str] = ()) -> None:
        """Everything that a valid chain refers to; `but` names parts that are left out."""
        for secret in chains.secrets(chain):
            if secret["metadata"]["name"].removeprefix(f"{chain}-") not in but:
                self.make("secrets", secret)

    def put(self, part: str, content: object, chain: str = "chain") -> None:
        """Have a Secret of a chain hold something else: `genesis`, `batcher-key`, …"""
        text = content if isinstance(content, str) else chains.encoded(content).decode()
        name = f"{chain}-{part}"
        self.edit("secrets", name, {"stringData": {_key_of(name, chain): text}})

    def make_chain(self, double: ChainDouble, name: str = "chain", **changes: Any) -> None:  # noqa: ANN401 -- a merge patch of its spec
        """An OPChain that settles on the double."""
        made = chains.opchain(name, **{"l1": {"rpcUrl": double.l1}, **changes})
        answer = self.api.create(self._path, made)
        assert answer.code == 201, answer.message

    def alter(self, name: str = "chain", **spec: Any) -> None:  # noqa: ANN401 -- any field
        """Change the spec of a chain: a merge patch."""
        self.patch(name, {"spec": spec})

    def upgrade(self, name: str = "chain", **images: str) -> None:
        """Give programs other images."""
        self.alter(name, components={one: {"image": image} for one, image in images.items()})

    def is_running(self, name: str = "chain") -> bool:
        """Whether a chain says that its newest generation runs, with all that belongs to it."""
        return self.is_ready(name) and self.chain_phase(name) == "Running"

    def says(self, reason: str, name: str = "chain", kind: str = "Ready") -> bool:
        """Whether a condition of a chain gives a reason."""
        return self.reason(name, kind) == reason

    def graph_of(self, name: str = "chain") -> Object | None:
        """The graph of a chain, if there is one."""
        return self.graphs.get(f"opchain-{name}") if self.has_graph(name) else None

    def has_graph(self, name: str = "chain") -> bool:
        return self.graphs.exists(f"opchain-{name}")

    def workload(self, component: str, name: str = "chain") -> Object:
        """The StatefulSet or Deployment of a program."""
        return self.live(WORKLOADS[component], f"{name}-{component}")

    def is_there(self, component: str, name: str = "chain") -> bool:
        return self.find(WORKLOADS[component], f"{name}-{component}") is not None

    def replicas(self, component: str, name: str = "chain") -> int:
        return int(self.workload(component, name)["spec"]["replicas"])

    def image(self, component: str, name: str = "chain") -> str:
        return image_of(self.workload(component, name))

    def pods(self, component: str, name: str = "chain") -> list[Object]:
        """The pods of a program, those that are on their way out as well."""
        query = f"?labelSelector=app.kubernetes.io%2Finstance%3D{name}"
        found = self.api.get(self.path("pods") + query).body["items"]
        return [pod for pod in found if component_of(pod) == component]

    def all(self, resource: str) -> list[Object]:
        """Everything of a kind."""
        items: list[Object] = self.api.get(self.path(resource)).body["items"]
        return items

    def identities(self, *components: str, name: str = "chain") -> dict[str, tuple[str, int]]:
        """What changes when anybody touches a program: the UIDs of its pods, its generation."""
        return {
            one: (
                " ".join(sorted(pod["metadata"]["uid"] for pod in self.pods(one, name))),
                self.workload(one, name)["metadata"]["generation"],
            )
            for one in components or COMPONENTS
        }

    def chain_phase(self, name: str = "chain") -> str:
        return str(self.status(name).get("phase", ""))

    def component(self, component: str, name: str = "chain") -> Object:
        found: Object = self.status(name).get("componentStatus", {}).get(component, {})
        return found

    def height(self, name: str = "chain") -> int:
        """The unsafe head, as the status has it."""
        return int(self.component("node", name).get("unsafeHeight", -1))


def _key_of(secret: str, chain: str) -> str:
    (found,) = [one for one in chains.secrets(chain) if one["metadata"]["name"] == secret]
    (key,) = found["stringData"]
    return str(key)


def component_of(object_: Object) -> str:
    """The program that an object is of."""
    labels = object_["metadata"].get("labels", {})
    return str(labels.get("app.kubernetes.io/component", ""))


def image_of(workload: Object) -> str:
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


@dataclass(frozen=True)
class Frame:
    """What happened to an object at one moment."""

    version: int
    """Of the whole cluster: moments of different kinds can be compared."""
    gone: bool
    object: Object


class Film:
    """Everything that happens to the pods, the workloads and the chains of a namespace."""

    KINDS = (
        PODS,
        Kind("apps", "v1", "StatefulSet", "statefulsets"),
        Kind("apps", "v1", "Deployment", "deployments"),
        Kind.of(OPChain),
    )

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._selection = Selection(namespace=namespace)
        self._frames: dict[str, list[Frame]] = {kind.plural: [] for kind in self.KINDS}

    async def record(self, kind: Kind) -> None:
        """Follow one kind until it is cancelled."""
        frames = self._frames[kind.plural]
        async for event in Watch(self._client, kind, self._selection).events():
            if isinstance(event, Put | Removed):
                object_ = msgspec.json.decode(event.raw)
                version = int(object_["metadata"]["resourceVersion"])
                frames.append(Frame(version, isinstance(event, Removed), object_))

    async def catch_up(self) -> None:
        """Wait until everything that has happened before now is on it."""
        for kind in self.KINDS:
            listed = await self._client.list(kind, self._selection)
            there = {
                one["metadata"]["uid"]: int(one["metadata"]["resourceVersion"]) for one in listed
            }
            await eventually(
                partial(self._shows, kind.plural, there), f"all {kind.plural} are seen"
            )

    def _shows(self, plural: str, there: Mapping[str, int]) -> bool:
        last = {one.object["metadata"]["uid"]: one for one in self._frames[plural]}
        present = {uid: one.version for uid, one in last.items() if not one.gone}
        return all(present.get(uid, -1) >= version for uid, version in there.items()) and all(
            uid in there for uid in present
        )

    def of(self, plural: str, name: str) -> list[Frame]:
        """What happened to the objects of a name."""
        return [one for one in self._frames[plural] if one.object["metadata"]["name"] == name]

    def first(
        self, plural: str, name: str, holds: Callable[[Object], bool], *, since: int = 0
    ) -> int:
        """When something was true of an object for the first time."""
        frames = [one for one in self.of(plural, name) if not one.gone and one.version > since]
        found = [one.version for one in frames if holds(one.object)]
        assert found, f"{plural} {name} never was so"
        return found[0]

    def gone(self, plural: str, name: str) -> int:
        """When an object was gone for the first time."""
        found = [one.version for one in self.of(plural, name) if one.gone]
        assert found, f"{plural} {name} never went"
        return found[0]

    def most_pods(self, component: str) -> int:
        """How many pods of a program there were at the same time, those that go included."""
        present: set[str] = set()
        most = 0
        for frame in self._frames["pods"]:
            if component_of(frame.object) != component:
                continue
            uid = frame.object["metadata"]["uid"]
            present = present - {uid} if frame.gone else present | {uid}
            most = max(most, len(present))
        return most

    def phases(self, name: str = "chain") -> list[str]:
        """The phases of a chain, one after the other."""
        told = [one.object.get("status", {}).get("phase", "") for one in self.of("opchains", name)]
        return [phase for phase, _ in groupby(told)]


@asynccontextmanager
async def filmed(access: Access, namespace: str) -> AsyncIterator[Film]:
    """A film of a namespace, until the block ends."""
    transport = Transport(access)
    film = Film(Client(transport), namespace)
    tasks = [asyncio.create_task(film.record(kind)) for kind in Film.KINDS]
    try:
        await film.catch_up()
        yield film
    finally:
        await end(*tasks)
        await transport.close()
