"""What nodes stand upon without saying so: the kinds and namespaces that others make."""

from typing import Any

import pytest

from pequod.api.graph import Node
from pequod.graph.foundations import foundations
from pequod.graph.model import checked


def node(
    id_: str,
    api_version: str,
    kind: str,
    name: str,
    **rest: Any,  # noqa: ANN401 -- of an object, or its namespace
) -> Node:
    metadata = {"name": name}
    if "namespace" in rest:
        metadata["namespace"] = rest.pop("namespace")
    depends_on = rest.pop("depends_on", ())
    object_ = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
    return Node(id=id_, object=object_, depends_on=depends_on)


CRD = node(
    "crd",
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.com",
    spec={"group": "example.com", "names": {"kind": "Widget"}},
)
WIDGET = node("widget", "example.com/v1beta1", "Widget", "one")
SPACE = node("space", "v1", "Namespace", "shop")
INSIDE = node("inside", "v1", "ConfigMap", "a", namespace="shop")
OUTSIDE = node("outside", "v1", "ConfigMap", "a", namespace="other")


def test_an_object_stands_upon_its_kind_in_every_version() -> None:
    assert foundations([WIDGET, CRD, OUTSIDE])["widget"] == ("crd",)


def test_an_object_stands_upon_its_namespace() -> None:
    found = foundations([INSIDE, OUTSIDE, SPACE])
    assert (found["inside"], found["outside"], found["space"]) == (("space",), (), ())


def test_a_graph_that_makes_neither_has_none() -> None:
    assert foundations([WIDGET, INSIDE, OUTSIDE]) == {}


def test_they_are_part_of_the_order() -> None:
    plan = checked([WIDGET, INSIDE, CRD, SPACE])
    assert plan.order.index("crd") < plan.order.index("widget")
    assert plan.order.index("space") < plan.order.index("inside")
    assert plan.levels == {"crd": 0, "space": 0, "widget": 1, "inside": 1}


def test_what_somebody_has_said_goes_before_what_nobody_has() -> None:
    """The namespace may be there already; such a graph is not refused."""
    late = node("space", "v1", "Namespace", "shop", depends_on=("inside",))
    assert checked([late, INSIDE]).order == ("inside", "space")


@pytest.mark.parametrize("spec", [None, [], "x", {"names": "x"}, {}])
def test_a_definition_that_is_none_defines_nothing(spec: object) -> None:
    odd = node("crd", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "x", spec=spec)
    assert foundations([odd, WIDGET]).get("widget", ()) == ()
