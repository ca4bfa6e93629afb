"""A source, its graph and every object, drawn as a tree."""

from rich.text import Text
from rich.tree import Tree

from pequod.api.graph import Node, NodeStatus
from pequod.api.meta import Condition
from pequod.api.platform import ResourceGraph, Transform
from pequod.base.logs import one_line
from pequod.controllers.frontend.naming import graph_name
from pequod.graph.model import InvalidGraphError, checked
from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import Kind

GRAPHS = Kind.of(ResourceGraph)
_TRANSFORMS = Kind.of(Transform)
_COLOURS = {
    "Ready": "green",
    "Adopted": "cyan",
    "Applied": "yellow",
    "Pending": "yellow",
    "Executing": "yellow",
    "Fetching": "yellow",
    "Error": "red",
    "Failed": "red",
}
_LONGEST = 200


class Drawing:
    """Draws one tree, as things are now."""

    def __init__(self, client: Client, namespace: str, name: str, *, of_transform: bool) -> None:
        self.client = client
        self.namespace = namespace
        self._name = name
        self._of_transform = of_transform

    async def tree(self) -> Tree:
        """The source, or the graph when that was asked for, and everything below."""
        if not self._of_transform:
            return await self._graph(self._name)
        transform = await self.client.get(
            _TRANSFORMS, self._name, namespace=self.namespace, type=Transform
        )
        ready = _ready(transform.status.conditions)
        label = _line("Transform", self._name, transform.status.phase, ready)
        drawn = Tree(label)
        for one in transform.status.violations:
            drawn.add(Text(f"{one.severity}: {one.path}: {one_line(one.message, _LONGEST)}"))
        known = transform.status.resource_graph_ref
        reference = transform.spec.cluster_ref
        name = graph_name("Transform", self._name, reference.name if reference else None)
        try:
            drawn.add(await self._graph(known.name if known else name))
        except NotFoundError:
            drawn.add(Text("no ResourceGraph yet", style="dim"))
        return drawn

    async def _graph(self, name: str) -> Tree:
        graph = await self.client.get(GRAPHS, name, namespace=self.namespace, type=ResourceGraph)
        status = graph.status
        drawn = Tree(_line("ResourceGraph", name, status.phase, _ready(status.conditions)))
        for node in _ordered(graph):
            drawn.add(_node(node, status.node_status.get(node.id)))
        return drawn


def _ordered(graph: ResourceGraph) -> list[Node]:
    """The nodes in the order in which they are applied, if there is one."""
    try:
        return [*checked(graph.spec.nodes)]
    except InvalidGraphError:
        return [*graph.spec.nodes]


def _node(node: Node, status: NodeStatus | None) -> Text:
    object_ = node.object
    phase = status.phase if status is not None else "Pending"
    said = (status.last_error or status.ready_details or "") if status is not None else ""
    needs = f" after {', '.join(node.depends_on)}" if node.depends_on else ""
    line = _line(str(object_["kind"]), str(object_["metadata"]["name"]), phase, said)
    return line.append(f"  [{node.id}{needs}]", style="dim")


def _line(kind: str, name: str, phase: str, said: str) -> Text:
    line = Text(f"{kind}/{name}  ", style="bold").append(phase, style=_COLOURS.get(phase, ""))
    return line.append(f"  {one_line(said, _LONGEST)}" if said else "", style="default")


def _ready(conditions: tuple[Condition, ...]) -> str:
    found = next((one for one in conditions if one.type == "Ready"), None)
    return found.message if found is not None else "no controller has looked at it yet"
