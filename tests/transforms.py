"""Transforms for tests: rendered and executed by the real controllers in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import yaml

import evaluators
from graphs import (
    OPERATOR_NAMESPACE,
    Graphs,
    Journal,
    JournalledTransport,
    closing,
)
from pequod.base.backoff import Backoff
from pequod.base.tasks import end
from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.resourcegraph import Rules
from pequod.controllers.platform.transform import TransformReconciler
from pequod.controllers.platform.wiring import PlatformSettings, Rendering, platform
from pequod.kube.addresses import AddressRule, CheckedResolver
from pequod.kube.auth import Access
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.clusters import Clusters
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from pequod.sources.library import LibraryOptions, opened
from pequod.sources.resolver import Reference
from waiting import until

API = "/apis/platform.pequod.io/v1alpha1"
MODULES = Path(__file__).parents[1] / "modules"
Object = dict[str, Any]
SOON = Backoff(first=0.05, limit=1.0)
"""When a pass that failed is tried again: tests do not wait."""

MAPS = """
package maps

#Input: {
	// What the map holds.
	value: string
	count: *1 | int & >=1 & <=5
}
input: #Input
context: {name: string, namespace: string}
graph: {
	metadata: name: "maps"
	nodes: [for i, _ in [0, 1, 2, 3, 4] if i < input.count {
		id: "map-\\(i)"
		object: {
			apiVersion: "v1"
			kind:       "ConfigMap"
			metadata: name: "\\(context.name)-\\(i)"
			data: value: input.value
		}
	}]
}
"""
"""A module of ConfigMaps, as many as one asks for."""
STUCK = MAPS.replace(
    'id: "map-\\(i)"',
    'id: "map-\\(i)"\n\t\tif input.value == "bad" {readyWhen: [{type: "CEL", expression: '
    "\"has(self.metadata.annotations) && 'well' in self.metadata.annotations\"}]}",
)
"""The maps, which do not become ready with `bad` in them until somebody says that all is well."""


NODES = """
package nodes

#Input: nodes: [...{...}]
input: #Input
context: {name: string, namespace: string}
graph: {metadata: name: "nodes", nodes: input.nodes}
"""
"""A module of whatever nodes one asks for."""


def inline(module: str) -> dict[str, str]:
    """A reference to a module by its text."""
    return {"type": "inline", "ref": module}


def written(folder: Path, given: Object, name: str = "web", **spec: Any) -> str:  # noqa: ANN401
    """A Transform in a file, without a namespace; of the maps unless it names another module."""
    path = folder / f"{name}.yaml"
    document = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": name},
        "spec": {"cueRef": {"type": "inline", "ref": MAPS}, "input": given, **spec},
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@dataclass
class Platform:
    """The running controllers of the family, and what they ask for."""

    journal: Journal
    reconciler: TransformReconciler


class StartPlatform(Protocol):
    """Runs the controllers until the block ends."""

    def __call__(
        self,
        *,
        identity: IdentityRules = ...,
        policies: Reference | None = ...,
        plain_http: frozenset[str] = ...,
        backoff: Backoff = ...,
    ) -> AbstractAsyncContextManager[Platform]: ...


@asynccontextmanager
async def running(
    access: Access,
    namespace: str,
    folder: Path,
    *,
    identity: IdentityRules,
    policies: Reference | None,
    plain_http: frozenset[str] = frozenset(),
    backoff: Backoff = SOON,
) -> AsyncIterator[Platform]:
    """The controllers of one namespace, under the operator's account."""
    transport = JournalledTransport(access)
    transport.journal = journal = Journal()
    caches = Caches(Client(transport))
    recorder = Recorder(caches.client, instance="test")
    rule = AddressRule(allow_local=True)
    clusters = Clusters(fence=None, resolver=lambda: CheckedResolver(rule))
    rules = Rules(namespace=OPERATOR_NAMESPACE, account="pequod-operator")
    sets = {"": policies, "strict": Reference(type="embedded", ref="policy")}
    options = LibraryOptions(
        root=folder, modules=MODULES, version="test", rule=rule, plain_http=plain_http
    )
    async with (
        closing(transport, caches, clusters),
        evaluators.evaluating() as evaluator,
        opened(options, evaluators.program()) as library,
        platform(
            caches,
            clusters,
            recorder,
            key=b"k" * 32,
            rendering=Rendering(evaluator=evaluator, library=library, policies=sets),
            settings=PlatformSettings(rules=rules, identity=identity),
        ) as reconcilers,
    ):
        controllers = [
            Controller(
                one,
                caches,
                recorder,
                selection=Selection(namespace=namespace),
                backoff=backoff,
            )
            for one in reconcilers
        ]
        tasks = [asyncio.create_task(one.run()) for one in controllers]
        tasks.append(asyncio.create_task(recorder.run()))
        try:
            (transforms,) = (one for one in reconcilers if isinstance(one, TransformReconciler))
            yield Platform(journal, transforms)
            assert not any(task.done() for task in tasks), "a controller ended by itself"
        finally:
            await end(*tasks)


class Transforms(Graphs):
    """The Transforms of one namespace, with their graphs and everything else in it."""

    def __init__(self, graphs: Graphs) -> None:
        super().__init__(graphs.api, graphs.namespace, graphs.as_operator)
        self._transforms = f"{API}/namespaces/{graphs.namespace}/transforms"

    def ask(self, name: str, given: Object, **spec: Any) -> str:  # noqa: ANN401
        """Make a Transform; of the maps unless it names another module. Returns its UID."""
        wanted = {"cueRef": {"type": "inline", "ref": MAPS}, "input": given, **spec}
        body = {
            "apiVersion": "platform.pequod.io/v1alpha1",
            "kind": "Transform",
            "metadata": {"name": name},
            "spec": wanted,
        }
        answer = self.api.create(self._transforms, body)
        assert answer.code == 201, answer.message
        return str(answer.body["metadata"]["uid"])

    def alter(self, name: str, **spec: Any) -> None:  # noqa: ANN401 -- any part of the spec
        answer = self.api.patch(f"{self._transforms}/{name}", {"spec": spec})
        assert answer.code == 200, answer.message

    def annotate(self, name: str, **annotations: str) -> None:
        body = {"metadata": {"annotations": annotations}}
        assert self.api.patch(f"{self._transforms}/{name}", body).code == 200

    def end(self, name: str) -> None:
        assert self.api.call("DELETE", f"{self._transforms}/{name}").code == 200

    def transform(self, name: str) -> Object:
        answer = self.api.get(f"{self._transforms}/{name}")
        assert answer.code == 200, answer.message
        return answer.body

    def is_gone(self, name: str) -> bool:
        return self.api.get(f"{self._transforms}/{name}").code == 404

    def told(self, name: str) -> Object:
        return dict(self.transform(name).get("status", {}))

    def says(self, name: str, kind: str = "Ready") -> Object:
        """A condition that speaks of the newest spec."""
        transform = self.transform(name)
        for one in transform.get("status", {}).get("conditions", ()):
            if one["type"] == kind:
                current = one["observedGeneration"] == transform["metadata"]["generation"]
                return dict(one) if current else {}
        return {}

    def is_done(self, name: str) -> bool:
        """Whether a Transform says that its newest generation is Ready."""
        return bool(self.says(name).get("status") == "True")

    def because(self, name: str, reason: str, kind: str = "Ready") -> bool:
        """Whether a Transform is not Ready for a reason."""
        said = self.says(name, kind)
        return bool(said.get("status") == "False" and said.get("reason") == reason)

    def revisions(self, name: str) -> list[int]:
        return [one["revision"] for one in self.told(name).get("revisions", ())]

    def kept(self) -> list[Object]:
        """The ControllerRevisions of the namespace."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/controllerrevisions"
        return list(self.api.get(path).body["items"])

    def rendered_at(self, name: str) -> datetime:
        """When the time of what a graph holds began."""
        return datetime.fromisoformat(self.get(name)["spec"]["metadata"]["renderedAt"])

    def value(self, name: str) -> str:
        """What a map of the module holds."""
        return str(self.live("configmaps", name)["data"]["value"])


class Plans(Transforms):
    """Transforms that are asked for node by node, and what is planned for them."""

    def want(self, name: str, *nodes: Object, **spec: Any) -> None:  # noqa: ANN401
        self.ask(name, {"nodes": [*nodes]}, cueRef=inline(NODES), **spec)

    def rehearse(self, name: str, *nodes: Object, **spec: Any) -> None:  # noqa: ANN401
        self.alter(name, input={"nodes": [*nodes]}, dryRun=True, **spec)

    async def planned(self, name: str) -> dict[str, tuple[str, str]]:
        """By the names of objects, what would happen to them."""
        await until(partial(self.because, name, "DryRun"))
        changes = self.told(name)["plan"].get("changes", ())
        return {one["object"]["name"]: (one["action"], one.get("message", "")) for one in changes}

    async def refused(self, name: str, reason: str) -> str:
        """Let it be executed; what that says, in the end."""
        self.alter(name, dryRun=False)
        await until(partial(self.because, name, reason, "Executed"))
        return str(self.says(name, "Executed")["message"])

    async def done(self, name: str) -> None:
        self.alter(name, dryRun=False)
        await until(partial(self.is_done, name))

    def write(self, manager: str, made: Object, *, force: bool = False) -> None:
        """Somebody else applies something."""
        name = made["metadata"]["name"]
        query = f"?fieldManager={manager}&force={str(force).lower()}"
        path = f"{self.path('configmaps', name)}{query}"
        assert self.api.call("PATCH", path, made, kind="apply-patch+yaml").code in {200, 201}
