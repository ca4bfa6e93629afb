"""A source, its graph and every object, drawn as a tree."""

from rich.text import Text
from rich.tree import Tree

from pequod.api.graph import Node, NodeStatus
from pequod.api.meta import Condition
from pequod.api.platform import ResourceGraph, Transform
from pequod.api.rollup import OPChain
from pequod.base.logs import one_line
from pequod.cli.named import Drawn
from pequod.controllers.frontend.naming import graph_name
from pequod.graph.model import InvalidGraphError, checked
from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import Kind

GRAPHS = Kind.of(ResourceGraph)
_COLOURS = {
    "Ready": "green",
    "Adopted": "cyan",
    "Applied": "yellow",
    "Pending": "yellow",
    "Executing": "yellow",
    "Fetching": "yellow",
    "ConfigLoading": "yellow",
    "Deploying": "yellow",
    "Upgrading": "yellow",
    "Running": "green",
    "Error": "red",
    "Failed": "red",
}
_LONGEST = 200


class Drawing:
    """Draws one tree, as things are now."""

    def __init__(self, client: Client, namespace: str, name: str, kind: Drawn) -> None:
        self.client = client
        self.namespace = namespace
        self._name = name
        self._kind = kind

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What a tree is drawn from."""
        return tuple({GRAPHS, Kind.of(self._kind)})

    async def tree(self) -> Tree:
        """The source, or the graph when that was asked for, and everything below."""
        if self._kind is ResourceGraph:
            return await self._graph(self._name)
        source = await self.client.get(
            Kind.of(self._kind), self._name, namespace=self.namespace, type=self._kind
        )
        kind, phase = self._kind.__name__, source.status.phase
        drawn = Tree(_line(kind, self._name, phase, _ready(source.status.conditions)))
        name = graph_name(kind, self._name)
        if isinstance(source, Transform):
            name = _draw_transform(drawn, source)
        elif isinstance(source, OPChain):
            _draw_chain(drawn, source)
        try:
            drawn.add(await self._graph(name))
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


def _draw_transform(drawn: Tree, transform: Transform) -> str:
    """What there is to say of a Transform; returns the name of its graph."""
    for one in transform.status.violations:
        drawn.add(Text(f"{one.severity}: {one.path}: {one_line(one.message, _LONGEST)}"))
    if transform.status.resource_graph_ref is not None:
        return transform.status.resource_graph_ref.name
    reference = transform.spec.cluster_ref
    return graph_name("Transform", transform.metadata.name, reference.name if reference else None)


def _draw_chain(drawn: Tree, chain: OPChain) -> None:
    """What the programs of a chain say, each in a line."""
    told = chain.status.component_status
    for name, one in (
        ("op-geth", told.geth),
        ("op-node", told.node),
        ("op-batcher", told.batcher),
        ("op-proposer", told.proposer),
    ):
        if one is not None:
            mark = Text(f"{name}  ", style="bold")
            mark.append(
                one_line(one.message or "", _LONGEST), style="green" if one.ready else "yellow"
            )
            drawn.add(mark)


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
