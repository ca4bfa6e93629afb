"""What is done to a graph while something fails: it is made, changed, deleted."""

from collections.abc import Callable
from dataclasses import dataclass, field

from graphs import Graphs, Object, config_map, deployment, node, object_

NAME = "shop"
PARTS = "parts"
"""The Secret that holds the sensitive parts of nodes."""


def nodes() -> list[Object]:
    """Six objects of five kinds, none of which needs a pod."""
    credentials = object_("v1", "Secret", "credentials", type="Opaque")
    service = object_("v1", "Service", "app", spec={"selector": {"app": "app"}})
    service["spec"]["ports"] = [{"name": "http", "port": 80, "protocol": "TCP"}]
    return [
        node("account", object_("v1", "ServiceAccount", "app")),
        node("settings", config_map("settings", greeting="hello", debug="yes")),
        node("credentials", credentials, objectFrom={"secretRef": {"name": PARTS, "key": "shop"}}),
        node("service", service),
        node("app", deployment("app"), dependsOn=["settings", "credentials"]),
        node("notes", config_map("notes", text="after the app"), dependsOn=["app"]),
    ]


def changed_nodes() -> list[Object]:
    """The same in one edit with a field, an object and a dependency less, and an object more."""
    kept = [one for one in nodes() if one["id"] != "service"]
    kept[1] = node("settings", config_map("settings", greeting="hello"))
    return [*kept, node("extra", config_map("extra", more="of it"), dependsOn=["settings"])]


def make(graphs: Graphs) -> None:
    graphs.create(NAME, *nodes())


def prepare(graphs: Graphs) -> None:
    """Make what the graph refers to."""
    graphs.secret(PARTS, shop='{"stringData": {"password": "canary"}}')


_ADOPTED = {
    "account": "serviceaccounts",
    "settings": "configmaps",
    "service": "services",
    "app": "apps/v1/deployments",
    "notes": "configmaps",
}


def leave_behind(graphs: Graphs) -> None:
    """Make most of the objects as kubectl does, each with something that no node names."""
    for one in nodes():
        if one["id"] not in _ADOPTED:
            continue
        made = one["object"] | {"metadata": one["object"]["metadata"] | {"labels": {"old": "yes"}}}
        if made["kind"] == "ConfigMap":
            made["data"] = made["data"] | {"old": "yes"}
        path = f"{graphs.path(_ADOPTED[one['id']])}?fieldManager=kubectl-client-side-apply"
        answer = graphs.api.call("POST", path, made)
        assert answer.code == 201, answer.message


def adopt(graphs: Graphs) -> None:
    resources = [
        {name: one["object"][name] for name in ("apiVersion", "kind")}
        | {"name": one["object"]["metadata"]["name"]}
        for one in nodes()
    ]
    graphs.create(NAME, *nodes(), adopt={"mode": "Explicit", "resources": resources})


def _nothing(_: Graphs) -> None:
    """A scenario that begins in an empty namespace."""


@dataclass(frozen=True)
class Scenario:
    """One change of one graph."""

    name: str
    begin: Callable[[Graphs], None]
    """What there is before; the graph is waited for."""
    act: Callable[[Graphs], None]
    """What somebody does, and the faults happen in."""
    nodes: list[Object] = field(default_factory=list)
    """What is there at the end."""
    survivors: frozenset[str] = frozenset()
    """Objects that have to be the same ones afterwards."""
    graph: str = NAME
    """Name of the graph."""

    def prepare(self, graphs: Graphs) -> None:
        prepare(graphs)
        self.begin(graphs)

    @property
    def has_graph(self) -> bool:
        """Whether there is a graph before it begins."""
        return self.begin is make

    @property
    def deletes(self) -> bool:
        return not self.nodes

    def is_begun(self, graphs: Graphs) -> bool:
        """Whether everything is there that there is to be before it begins."""
        return graphs.is_ready(self.graph)

    def is_settled(self, graphs: Graphs) -> bool:
        """Whether it has come to its end."""
        if self.deletes:
            return not graphs.exists(self.graph)
        return graphs.is_ready(self.graph)

    def rest(self, graphs: Graphs) -> Object:
        """What else there is at the end, without what differs from run to run."""
        del graphs
        return {}


CREATE = Scenario(name="create", begin=_nothing, act=make, nodes=nodes())
UPDATE = Scenario(
    name="update",
    begin=make,
    act=lambda graphs: graphs.change(NAME, *changed_nodes()),
    nodes=changed_nodes(),
    survivors=frozenset(
        {
            "ServiceAccount/app",
            "ConfigMap/settings",
            "Secret/credentials",
            "Deployment/app",
            "ConfigMap/notes",
        }
    ),
)
DELETE = Scenario(name="delete", begin=make, act=lambda graphs: graphs.delete(NAME))
ADOPT = Scenario(name="adopt", begin=leave_behind, act=adopt, nodes=nodes())

SCENARIOS = {one.name: one for one in (CREATE, UPDATE, DELETE, ADOPT)}
