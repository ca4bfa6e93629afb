"""What is stored of a rendering."""

from datetime import UTC, datetime

from pequod.api.graph import Graph, GraphMetadata, Node
from pequod.controllers.frontend.compiling import Compiled, compiled
from pequod.controllers.frontend.naming import graph_name, shortened
from pequod.graph.digests import Digests

NOW = datetime(2026, 11, 15, tzinfo=UTC)
DIGESTS = Digests(bytes(32))


def secret(value: str) -> Node:
    object_ = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    return Node(id="s", object=object_ | {"stringData": {"password": value}})


def made(*nodes: Node, key: Digests = DIGESTS) -> Compiled:
    origin = GraphMetadata(version="v1")
    return compiled(Graph(nodes=nodes), name="transform-web", digests=key, origin=origin, now=NOW)


def test_what_is_secret_stands_in_a_secret_that_is_named_for_it() -> None:
    one = made(secret("canary"))
    (node,) = one.nodes
    assert "canary" not in str(node)
    assert node.object_from is not None
    assert node.object_from.secret_ref.name == one.secret
    assert one.secret.startswith("transform-web-")
    assert b"canary" in one.sensitive["s"]
    assert made(secret("canary")).secret == one.secret
    assert made(secret("other")).secret != one.secret
    assert made(secret("other")).render_hash != one.render_hash


def test_a_secret_cannot_be_guessed_from_its_name() -> None:
    assert made(secret("a")).secret != made(secret("a"), key=Digests(b"k" * 32)).secret


def test_equal_graphs_have_equal_hashes_whenever_they_were_rendered() -> None:
    node = Node(id="a", object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert made(node).render_hash == made(node).render_hash
    assert made(node).secret == ""
    assert made(node).metadata.rendered_at == NOW


def test_names_of_graphs_say_whose_they_are_and_are_never_too_long() -> None:
    assert graph_name("Transform", "web") == "transform-web"
    assert graph_name("Transform", "web", "eu") == "transform-web-eu"
    long = graph_name("Transform", "w" * 200)
    assert len(long) == 63
    assert long != graph_name("Transform", "w" * 201)
    assert not shortened(f"{'w' * 51}-{'x' * 30}").rpartition("-")[0].endswith("-")
