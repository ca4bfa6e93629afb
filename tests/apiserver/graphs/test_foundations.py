"""Kinds and namespaces that a graph makes for itself come before what stands upon them."""

import secrets
from functools import partial

from customkinds import CRDS, custom_kind, definition
from graphs import RBAC, TENANT, Graphs, Start, config_map, node, object_
from waiting import until


def make_mighty(graphs: Graphs) -> None:
    """Let the tenant, and the operator, do everything."""
    binding = {
        "metadata": {"name": f"mighty-{secrets.token_hex(4)}"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"kind": "ServiceAccount", "name": TENANT, "namespace": graphs.namespace},
        ],
    }
    assert graphs.api.create(f"/apis/{RBAC}/v1/clusterrolebindings", binding).code == 201


async def test_a_kind_and_an_object_of_it_can_be_in_one_graph(
    graphs: Graphs, engine: Start
) -> None:
    """Without being told to, the object waits for its kind, which takes a moment to be served."""
    make_mighty(graphs)
    kind = custom_kind()
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        **definition(kind),
    }
    widget = object_(kind.api_version, kind.kind, "one", spec={"a": 1})
    graphs.create("web", node("widget", widget), node("crd", crd), node("a", config_map("a")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        events = [event["reason"] for event in graphs.events("web")]
        assert "UnknownKind" not in events
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.api.get(f"{CRDS}/{kind.resource}").code == 404


async def test_objects_in_a_namespace_of_the_graph_wait_for_it(
    graphs: Graphs, engine: Start
) -> None:
    make_mighty(graphs)
    name = f"{graphs.namespace}-made"
    inside = config_map("inside", metadata={"namespace": name})
    space = object_("v1", "Namespace", name)
    graphs.create("web", node("inside", inside), node("space", space))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        assert not [one for one in graphs.events("web") if one["type"] == "Warning"]
        graphs.api.call("DELETE", f"/api/v1/namespaces/{name}")
        path = f"/api/v1/namespaces/{name}"
        uid = graphs.api.get(path).body["metadata"]["uid"]
        await until(lambda: graphs.api.get(path).body.get("metadata", {}).get("uid", uid) != uid)
        await until(lambda: graphs.api.get(f"{path}/configmaps/inside").code == 200)
        await until(partial(graphs.is_ready, "web"))
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
