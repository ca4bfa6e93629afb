"""Which nodes are objects that exist already, and what is said of the others."""

from typing import Any

import pytest

from pequod.api.graph import Adopt, AdoptedResource, ApplyPolicy, Node
from pequod.api.meta import LabelRequirement, LabelSelector
from pequod.graph.adopt import Chosen, listed, matches, named, query, selected
from pequod.graph.model import Ref

WEB = Ref("apps", "Deployment", "shop", "web")
SETTINGS = Ref("", "ConfigMap", "shop", "settings")
ROLE = Ref("rbac.authorization.k8s.io", "ClusterRole", "", "reader")
REFS = {"web": WEB, "settings": SETTINGS, "role": ROLE}


def node(id_: str, ref: Ref, version: str = "v1", **more: Any) -> Node:  # noqa: ANN401
    api_version = f"{ref.group}/{version}" if ref.group else version
    metadata = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    object_ = {"apiVersion": api_version, "kind": ref.kind, "metadata": metadata}
    return Node(id=id_, object=object_, **more)


NODES = {id_: node(id_, ref) for id_, ref in REFS.items()}


def resource(ref: Ref, version: str = "v1", **more: Any) -> AdoptedResource:  # noqa: ANN401
    api_version = f"{ref.group}/{version}" if ref.group else version
    return AdoptedResource(api_version=api_version, kind=ref.kind, name=ref.name, **more)


def chosen(*resources: AdoptedResource, nodes: dict[str, Node] | None = None) -> Chosen:
    return named(Adopt(resources=resources), nodes or NODES, REFS, "shop")


def test_objects_are_found_by_kind_and_name_in_the_namespace_of_the_graph() -> None:
    found = chosen(resource(WEB), resource(SETTINGS, namespace="shop"))
    assert found == Chosen(frozenset({"web", "settings"}))


def test_the_version_of_a_kind_does_not_matter_and_its_group_does() -> None:
    assert chosen(resource(WEB, "v1beta1")).nodes == {"web"}
    other = chosen(resource(WEB._replace(group="extensions")))
    assert other == Chosen(left_alone=("Deployment/shop/web is no node and was left alone",))


def test_cluster_scoped_objects_have_no_namespace() -> None:
    assert chosen(resource(ROLE)).nodes == {"role"}


def test_an_object_of_another_namespace_is_another_one() -> None:
    found = chosen(resource(WEB, namespace="other"))
    assert found == Chosen(left_alone=("Deployment/other/web is no node and was left alone",))


def test_a_node_id_says_which_node_and_has_to_be_right() -> None:
    assert chosen(resource(WEB, node_id="web")).nodes == {"web"}
    wrong = chosen(resource(WEB, node_id="settings"), resource(WEB, node_id="none"))
    assert wrong == Chosen(
        left_alone=(
            "Deployment/shop/web was left alone: node settings is ConfigMap/shop/settings; correct "
            "its nodeId",
            "Deployment/shop/web was left alone: there is no node none; correct its nodeId",
        )
    )


def test_a_node_that_only_observes_adopts_nothing() -> None:
    observing = NODES | {"web": node("web", WEB, apply_policy=ApplyPolicy(mode="Observe"))}
    found = chosen(resource(WEB), nodes=observing)
    assert found == Chosen(
        left_alone=("Deployment/shop/web was left alone: node web only observes it",)
    )


def test_a_node_of_an_unknown_kind_complains_itself() -> None:
    widget = Ref("example.com", "Widget", "shop", "one")
    nodes = NODES | {"widget": node("widget", widget)}
    for asked in (resource(widget), resource(widget, node_id="widget")):
        assert chosen(asked, nodes=nodes) == Chosen()


def test_what_is_named_twice_is_told_once() -> None:
    lost = resource(WEB._replace(name="lost"))
    assert len(chosen(lost, lost).left_alone) == 1


def test_selected_objects_are_adopted_if_they_are_nodes() -> None:
    stranger = WEB._replace(name="old")
    found = selected([WEB, stranger, stranger], REFS, also=["settings"])
    assert found == Chosen(
        frozenset({"web", "settings"}), ("Deployment/shop/old is no node and was left alone",)
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (LabelSelector(match_labels={"b": "2", "a": "1"}), "a=1,b=2"),
        (
            LabelSelector(
                match_labels={"a": "1"},
                match_expressions=(
                    LabelRequirement(key="b", operator="In", values=("x", "y")),
                    LabelRequirement(key="c", operator="NotIn", values=("z",)),
                    LabelRequirement(key="d", operator="Exists"),
                    LabelRequirement(key="e", operator="DoesNotExist"),
                ),
            ),
            "a=1,b in (x,y),c notin (z),d,!e",
        ),
    ],
)
def test_a_selector_is_asked_for_as_kubectl_does(selector: LabelSelector, expected: str) -> None:
    assert query(selector) == expected


def test_many_strangers_are_counted() -> None:
    text = listed([f"{number} was left alone" for number in range(12)], most=2)
    assert text == "0 was left alone; 1 was left alone; and 10 more were left alone"


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ("a", "b"), {"app": "a"}, True),
        ("In", ("a", "b"), {"app": "c"}, False),
        ("In", ("a",), {}, False),
        ("NotIn", ("a",), {"app": "a"}, False),
        ("NotIn", ("a",), {}, True),
        ("Exists", (), {"app": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {"app": "a"}, False),
        ("DoesNotExist", (), {}, True),
    ],
)
def test_labels_are_selected_as_the_api_server_selects_them(
    operator: Any,  # noqa: ANN401 -- one of the four words
    values: tuple[str, ...],
    labels: dict[str, str],
    *,
    expected: bool,
) -> None:
    requirement = LabelRequirement(key="app", operator=operator, values=values)
    assert matches(LabelSelector(match_expressions=(requirement,)), labels) is expected
    assert matches(LabelSelector(match_labels={"tier": "web"}), labels) is False
