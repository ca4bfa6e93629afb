"""What is done to a Transform while something fails: it is made, changed, returned, deleted."""

from dataclasses import dataclass

from faults.scenarios import Scenario
from graphs import Graphs, Object
from transforms import Transforms

NAME = "shop"
MODULE = """
package shop

#Input: {greeting: string, password: string, extra: *false | bool}
input: #Input
context: {name: string, namespace: string}
graph: nodes: [
	{
		id: "settings"
		object: {
			apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings"
			data: greeting: input.greeting
		}
	},
	{
		id: "credentials"
		object: {
			apiVersion: "v1", kind: "Secret", metadata: name: "credentials"
			stringData: password: input.password
		}
	},
	{
		id: "notes"
		dependsOn: ["settings", "credentials"]
		object: {
			apiVersion: "v1", kind: "ConfigMap", metadata: name: "notes"
			data: of: "${nodes.settings.data.greeting}"
		}
	},
	if input.extra {
		id: "extra"
		object: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "extra", data: more: "yes"}
	},
]
"""
FIRST = {"greeting": "hello", "password": "canary", "extra": True}
SECOND = {"greeting": "welcome", "password": "canary-2"}


def make(graphs: Graphs) -> None:
    Transforms(graphs).ask(NAME, FIRST, cueRef={"type": "inline", "ref": MODULE})


def change(graphs: Graphs) -> None:
    Transforms(graphs).alter(NAME, input={**SECOND, "extra": None})


@dataclass(frozen=True)
class TransformScenario(Scenario):
    """One change of one Transform."""

    revisions: int = 1
    """How many there are before it begins."""

    def prepare(self, graphs: Graphs) -> None:
        self.begin(graphs)

    @property
    def has_graph(self) -> bool:
        return self.begin is make

    def is_begun(self, graphs: Graphs) -> bool:
        transforms = Transforms(graphs)
        if not transforms.is_done(NAME):
            return False
        if self.revisions == len(transforms.revisions(NAME)):
            return True
        change(graphs)
        return False

    def is_settled(self, graphs: Graphs) -> bool:
        transforms = Transforms(graphs)
        if self.deletes:
            return transforms.is_gone(NAME) and not transforms.kept()
        return transforms.is_done(NAME) and graphs.is_ready(self.graph)

    def rest(self, graphs: Graphs) -> Object:
        transforms = Transforms(graphs)
        secrets = graphs.api.get(graphs.path("secrets")).body["items"]
        kept = [one["metadata"]["name"] for one in secrets]
        rest: Object = {
            "revisions": sorted(one["revision"] for one in transforms.kept()),
            "secrets": sum(1 for name in kept if name.startswith("transform-")),
        }
        if not self.deletes:
            told = transforms.told(NAME)
            rest["phase"] = told["phase"]
            rest["told"] = [(one["revision"], one["ready"]) for one in told["revisions"]]
            rest["conditions"] = {one["type"]: one["status"] for one in told["conditions"]}
        return rest


_GRAPH = "transform-shop"
_OBJECTS: list[Object] = [{"id": "some"}]
"""That there is something at the end; what, the run without a fault says."""

CREATE = TransformScenario(
    name="transform-create", begin=lambda _: None, act=make, nodes=_OBJECTS, graph=_GRAPH
)
UPDATE = TransformScenario(
    name="transform-update",
    begin=make,
    act=change,
    nodes=_OBJECTS,
    survivors=frozenset({"ConfigMap/settings", "Secret/credentials", "ConfigMap/notes"}),
    graph=_GRAPH,
)
ROLLBACK = TransformScenario(
    name="transform-rollback",
    begin=make,
    act=lambda graphs: Transforms(graphs).alter(NAME, rollbackTo=1),
    nodes=_OBJECTS,
    survivors=frozenset({"ConfigMap/settings", "Secret/credentials", "ConfigMap/notes"}),
    graph=_GRAPH,
    revisions=2,
)
DELETE = TransformScenario(
    name="transform-delete",
    begin=make,
    act=lambda graphs: Transforms(graphs).end(NAME),
    graph=_GRAPH,
)

SCENARIOS = {one.name: one for one in (CREATE, UPDATE, ROLLBACK, DELETE)}
