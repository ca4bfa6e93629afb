"""Graphs for tests: made by hand, executed by the real controller in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from clusters import Api
from pequod.base.backoff import Backoff
from pequod.base.tasks import end
from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.limits import NamespaceLimits
from pequod.controllers.platform.resourcegraph import ResourceGraphReconciler, Rules
from pequod.controllers.platform.wiring import PlatformSettings, resource_graphs
from pequod.graph.probes import Cel
from pequod.kube.addresses import AddressRule, CheckedResolver
from pequod.kube.auth import Access
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.clusters import Clusters
from pequod.kube.objects import Key
from pequod.kube.transport import Request, Transport
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from waiting import until

API = "/apis/platform.pequod.io/v1alpha1"
TENANT = "tenant"
RBAC = "rbac.authorization.k8s.io"
PROBE = "probe-of-the-test"
OPERATOR_NAMESPACE = "pequod-system"
Object = dict[str, Any]


def object_(api_version: str, kind: str, name: str, **content: Any) -> Object:  # noqa: ANN401
    """An object as a module would render it."""
    metadata = {"name": name, **content.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def config_map(name: str, metadata: Object | None = None, **data: str) -> Object:
    return object_("v1", "ConfigMap", name, metadata=metadata or {}, data=data or {"a": "1"})


def deployment(name: str, *, replicas: int | None = 0, image: str = "app:1") -> Object:
    labels = {"app": name}
    spec: Object = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": image}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return object_("apps/v1", "Deployment", name, spec=spec)


def node(id_: str, made: Object, **more: Any) -> Object:  # noqa: ANN401 -- any field of a node
    """A node of a graph."""
    return {"id": id_, "object": made, **more}


def grant(api: Api, namespace: str, *, account: str = TENANT, role: str = "admin") -> None:
    """An account, and what it may do in its namespace."""
    _bind(api, namespace, account, {"kind": "ClusterRole", "name": role})


WRITING = ("create", "patch", "delete")


def grant_writing(
    api: Api,
    namespace: str,
    resource: str,
    *,
    account: str = "writer",
    verbs: Sequence[str] = WRITING,
) -> str:
    """An account that may write a resource of the core group, but not read it; its name."""
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": [*verbs]}]
    role = {"metadata": {"name": account}, "rules": rules}
    assert api.create(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", role).code == 201
    _bind(api, namespace, account, {"kind": "Role", "name": account})
    return account


def _bind(api: Api, namespace: str, account: str, role: Object) -> None:
    """Have an account, with the rights of a role in its namespace."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": account}}).code in {201, 409}
    binding = {
        "metadata": {"name": f"{account}-{role['name']}"},
        "roleRef": {"apiGroup": RBAC, **role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    assert api.create(path, binding).code == 201


@dataclass(frozen=True)
class Asked:
    """One request that the operator made."""

    method: str
    path: str
    user: str
    """In whose name; empty for its own."""

    @property
    def place(self) -> str:
        return self.path.partition("?")[0]

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path

    @property
    def writes(self) -> bool:
        return self.method not in {"GET", "HEAD"}

    @property
    def is_question(self) -> bool:
        """Whether it asks for rights, which writes nothing."""
        return "/authorization.k8s.io/" in self.path

    @property
    def is_event(self) -> bool:
        return "/events.k8s.io/" in self.path

    @property
    def is_graph(self) -> bool:
        return "/resourcegraphs" in self.path


@dataclass
class Journal:
    """Everything that the operator asked for."""

    asked: list[Asked] = field(default_factory=list)

    def of(self, word: str) -> list[Asked]:
        """Requests about a place, watches aside."""
        return [one for one in self.asked if word in one.place and not one.is_watch]

    def writes(self, word: str = "") -> list[Asked]:
        """Writes to objects of graphs."""
        return [
            one
            for one in self.asked
            if one.writes
            and not (one.is_question or one.is_event or one.is_graph)
            and not one.place.endswith(f"/{PROBE}")
            and word in one.place
        ]

    def clear(self) -> None:
        self.asked.clear()


class JournalledTransport(Transport):
    """A transport that writes down what it is asked for."""

    journal: Journal

    async def send(self, request: Request) -> bytes:
        headers = dict(request.headers)
        user = headers.get("Impersonate-User", "")
        self.journal.asked.append(Asked(request.method, request.path, user))
        return await super().send(request)


@dataclass
class Engine:
    """A running controller, and what it asks for."""

    controller: Controller[Any]
    reconciler: ResourceGraphReconciler
    journal: Journal
    clusters: Clusters


class Start(Protocol):
    """Runs the controller until the block ends."""

    def __call__(
        self,
        *,
        identity: IdentityRules = ...,
        limits: NamespaceLimits = ...,
        abandon_after: float = ...,
        cel: Cel | None = ...,
    ) -> AbstractAsyncContextManager[Engine]: ...


@asynccontextmanager
async def running(
    access: Access,
    namespace: str,
    *,
    identity: IdentityRules,
    limits: NamespaceLimits,
    abandon_after: float,
    cel: Cel | None,
) -> AsyncIterator[Engine]:
    """The controller of one namespace, under the operator's account."""
    transport = JournalledTransport(access)
    transport.journal = journal = Journal()
    caches = Caches(Client(transport))
    recorder = Recorder(caches.client, instance="test")
    rule = AddressRule(allow_local=True)
    clusters = Clusters(fence=None, resolver=lambda: CheckedResolver(rule))
    rules = Rules(
        namespace=OPERATOR_NAMESPACE,
        account="pequod-operator",
        abandon_after=abandon_after,
        limits=limits,
    )
    graphs = resource_graphs(
        caches,
        clusters,
        recorder,
        key=b"k" * 32,
        cel=cel,
        settings=PlatformSettings(rules=rules, identity=identity),
    )
    async with closing(transport, caches, clusters), graphs as reconciler:
        controller = Controller(
            reconciler,
            caches,
            recorder,
            selection=Selection(namespace=namespace),
            backoff=Backoff(first=0.05, limit=1.0),
        )
        tasks = [asyncio.create_task(controller.run()), asyncio.create_task(recorder.run())]
        try:
            yield Engine(controller, reconciler, journal, clusters)
            assert not any(task.done() for task in tasks), "the controller ended by itself"
        finally:
            await end(*tasks)


@asynccontextmanager
async def closing(transport: Transport, caches: Caches, clusters: Clusters) -> AsyncIterator[None]:
    """Close everything in the end, whatever happened."""
    try:
        yield
    finally:
        await clusters.close()
        await caches.close()
        await transport.close()


class Graphs:
    """The graphs of one namespace, and everything else in it, as an administrator sees them."""

    def __init__(self, api: Api, namespace: str, as_operator: Api) -> None:
        self.api = api
        self.namespace = namespace
        self.as_operator = as_operator
        self._path = f"{API}/namespaces/{namespace}/resourcegraphs"

    def create(self, name: str, *nodes: Object, **spec: Any) -> str:  # noqa: ANN401
        """Make a graph by hand; returns its UID."""
        metadata = {"name": name, **spec.pop("metadata", {})}
        wanted = {"serviceAccountName": TENANT, "nodes": [*nodes], **spec}
        body = {
            "apiVersion": "platform.pequod.io/v1alpha1",
            "kind": "ResourceGraph",
            "metadata": metadata,
            "spec": {key: value for key, value in wanted.items() if value is not None},
        }
        answer = self.api.create(self._path, body)
        assert answer.code == 201, answer.message
        return str(answer.body["metadata"]["uid"])

    def change(self, name: str, *nodes: Object, **spec: Any) -> None:  # noqa: ANN401
        """Give a graph other nodes."""
        self.patch(name, {"spec": {"nodes": [*nodes], **spec}})

    def patch(self, name: str, body: Object) -> None:
        answer = self.api.patch(f"{self._path}/{name}", body)
        assert answer.code == 200, answer.message

    def delete(self, name: str) -> None:
        assert self.api.call("DELETE", f"{self._path}/{name}").code == 200

    def get(self, name: str) -> Object:
        answer = self.api.get(f"{self._path}/{name}")
        assert answer.code == 200, answer.message
        return answer.body

    def exists(self, name: str) -> bool:
        return self.api.get(f"{self._path}/{name}").code == 200

    def status(self, name: str) -> Object:
        return dict(self.get(name).get("status", {}))

    def condition(self, name: str, kind: str = "Ready") -> Object:
        conditions = self.status(name).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def reason(self, name: str, kind: str = "Ready") -> str:
        return str(self.condition(name, kind).get("reason", ""))

    def message(self, name: str, kind: str = "Ready") -> str:
        return str(self.condition(name, kind).get("message", ""))

    def is_ready(self, name: str) -> bool:
        """Whether a graph says that its newest generation is ready."""
        graph = self.get(name)
        ready = [c for c in graph["status"].get("conditions", ()) if c["type"] == "Ready"]
        return (
            bool(ready)
            and ready[0]["status"] == "True"
            and ready[0]["observedGeneration"] == graph["metadata"]["generation"]
        )

    def phase(self, name: str, id_: str) -> str:
        nodes = self.status(name).get("nodeStatus", {})
        return str(nodes.get(id_, {}).get("phase", ""))

    def inventory(self, name: str) -> dict[str, str]:
        """Kind and name of each entry, and its UID."""
        found = {}
        for entry in self.status(name).get("inventory", ()):
            _, rest = entry["id"].split("_", 1)
            object_name, _, kind = rest.rsplit("_", 2)
            found[f"{kind}/{object_name}"] = entry.get("uid", "")
        return found

    def events(self, name: str) -> list[Object]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        items = self.api.get(path).body["items"]
        return [event for event in items if event["regarding"]["name"] == name]

    def path(self, resource: str, name: str = "") -> str:
        """Where an object of the namespace is: `configmaps`, or `apps/v1/deployments`."""
        *version, plural = resource.split("/")
        root = f"/apis/{'/'.join(version)}" if version else "/api/v1"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def find(self, resource: str, name: str) -> Object | None:
        answer = self.api.get(self.path(resource, name))
        return answer.body if answer.code == 200 else None

    def live(self, resource: str, name: str) -> Object:
        found = self.find(resource, name)
        assert found is not None, f"{resource} {name} is not there"
        return found

    def uid(self, resource: str, name: str) -> str:
        return str(self.live(resource, name)["metadata"]["uid"])

    def make(self, resource: str, made: Object) -> Object:
        """Make an object as somebody else would."""
        answer = self.api.call("POST", self.path(resource) + "?fieldManager=somebody", made)
        assert answer.code == 201, answer.message
        return answer.body

    def edit(self, resource: str, name: str, body: Object, *, manager: str = "somebody") -> Object:
        path = f"{self.path(resource, name)}?fieldManager={manager}"
        answer = self.api.patch(path, body)
        assert answer.code == 200, answer.message
        return answer.body

    def remove(self, resource: str, name: str, body: Object | None = None) -> None:
        assert self.api.call("DELETE", self.path(resource, name), body).code in {200, 202}

    def secret(self, name: str, **keys: str) -> None:
        """A Secret for sensitive parts."""
        self.make("secrets", {"metadata": {"name": name}, "stringData": keys})

    async def settled(self, engine: Engine) -> None:
        """Wait until everything before now was looked at: a later graph comes and goes."""
        path = f"{API}/namespaces/{self.namespace}/resourcegraphs"
        for item in self.api.get(path).body["items"]:
            engine.controller.wake(Key(self.namespace, item["metadata"]["name"]))
        self.create(PROBE, node("probe", config_map(PROBE)))
        await until(lambda: self.is_ready(PROBE))
        self.delete(PROBE)
        await until(lambda: not self.exists(PROBE))
