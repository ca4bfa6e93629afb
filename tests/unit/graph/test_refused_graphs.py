"""What is wrong with a graph is found before the first write, and all of it at once."""

from typing import Any

import pytest

from pequod.api.graph import Node
from pequod.graph.model import (
    GRAPH_LABEL,
    MAX_DEPTH,
    MAX_OBJECT_BYTES,
    InvalidGraphError,
    Plan,
    Ref,
    checked,
)

Object = dict[str, Any]
KIB = 1024


def config(name: str = "it", **metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def node(id_: str, object_: Object | None = None, depends_on: tuple[str, ...] = ()) -> Node:
    return Node(id=id_, object=object_ or config(id_), depends_on=depends_on)


def problems(*nodes: Node) -> tuple[str, ...]:
    with pytest.raises(InvalidGraphError) as caught:
        checked(nodes)
    return caught.value.problems


def problem(object_: Object) -> str:
    """The only problem of a graph of one object."""
    (found,) = problems(node("it", object_))
    assert found.startswith("node it: ")
    return found.removeprefix("node it: ")


def accepted(*nodes: Node) -> Plan:
    return checked(nodes)


def filled(id_: str, size: int) -> Node:
    return node(id_, config(id_) | {"data": {"x": "x" * size}})


def test_a_plan_knows_order_dependents_and_levels() -> None:
    plan = accepted(node("app", depends_on=("base",)), node("base"))
    assert plan.order == ("base", "app")
    assert plan.dependents == {"app": (), "base": ("app",)}
    assert plan.levels == {"base": 0, "app": 1}
    assert [one.id for one in plan] == ["base", "app"]
    assert plan.warnings == ()
    assert plan.size > 0


def test_a_graph_may_be_empty() -> None:
    assert accepted().order == ()


def test_a_plan_goes_on_with_nodes_that_were_read_anew() -> None:
    plan = accepted(node("app", depends_on=("base",)), node("base"))
    anew = [node("base", config("base", labels={"a": "b"})), node("app", depends_on=("base",))]
    again = plan.over(()).over(anew)
    assert again.order == plan.order
    assert [one.object for one in again] == [one.object for one in anew]


def test_every_problem_is_told_at_once() -> None:
    found = problems(
        node("twice", config("one")),
        node("twice", config("two")),
        node("lost", depends_on=("nowhere",)),
        node("self", depends_on=("self",)),
        node("copy", config("one")),
        node("owned", config("owned", ownerReferences=[{"uid": "x"}], finalizers=["a/b"])),
    )
    assert found == (
        "2 nodes have the id twice: give each its own",
        "node lost depends on nowhere, which is no node of the graph",
        "nodes twice and copy are the same object: remove one of them",
        "node owned: metadata.ownerReferences is not allowed: graphs keep and remove their own "
        "objects",
        "node owned: metadata.finalizers is not allowed: nobody would take them off again",
        "nodes wait for each other in a circle: self → self; remove one dependsOn of these",
    )


def test_of_very_many_problems_the_message_shows_some_and_counts_the_rest() -> None:
    nodes = [node(f"n{i}", depends_on=(f"m{i}",)) for i in range(30)]
    with pytest.raises(InvalidGraphError, match=r"node n19 .*; and 10 more$") as error:
        checked(nodes)
    assert len(error.value.problems) == 30
    assert "n20" not in str(error.value)


def test_case_59_a_circle_is_refused_with_its_names() -> None:
    (found,) = problems(
        node("a", depends_on=("b",)), node("b", depends_on=("a",)), node("c", depends_on=("a",))
    )
    assert "a → b → a" in found or "b → a → b" in found
    assert "remove one dependsOn" in found


def test_case_59_a_node_that_depends_on_itself_is_refused() -> None:
    assert "self → self" in problems(node("self", depends_on=("self",)))[0]


def test_case_59_a_dependency_that_is_no_node_is_refused() -> None:
    found = problems(node("app", depends_on=("db", "cache")))
    assert [one.split(",")[0] for one in found] == [
        "node app depends on db",
        "node app depends on cache",
    ]


def test_case_59_two_thousand_nodes_are_refused() -> None:
    (found,) = problems(*(node(f"n{i}") for i in range(2000)))[:1]
    assert found == "the graph has 2000 nodes and may have 1000: split it"


def test_case_59_a_diamond_is_a_graph() -> None:
    plan = accepted(
        node("top", depends_on=("left", "right")),
        node("left", depends_on=("base",)),
        node("right", depends_on=("base",)),
        node("base"),
    )
    assert plan.order[0] == "base"
    assert plan.order[-1] == "top"


def test_the_same_object_in_another_version_of_its_kind_is_the_same_object() -> None:
    one = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}}
    (found,) = problems(node("one", one), node("two", one | {"apiVersion": "example.org/v1beta1"}))
    assert found == "nodes one and two are the same object: remove one of them"


def test_objects_of_one_name_differ_by_group_kind_and_namespace() -> None:
    here = config("a")
    accepted(
        node("one", here),
        node("two", here | {"kind": "Service"}),
        node("three", here | {"apiVersion": "example.org/v1"}),
        node("four", config("a", namespace="elsewhere")),
    )


@pytest.mark.parametrize(
    "api_version",
    [
        "v1",
        "apps/v1",
        "example.org/v1alpha1",
        "gateway.networking.k8s.io/v1",
        "example.org/stable",
        "example.org/v1-beta",
    ],
)
def test_every_version_that_an_api_server_can_serve_is_accepted(api_version: str) -> None:
    accepted(node("it", config() | {"apiVersion": api_version}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"apiVersion": "${version}"},
        {"apiVersion": "apps/${v}"},
        {"apiVersion": "a/b/v1"},
        {"apiVersion": "/v1"},
        {"apiVersion": "v1\n"},
        {"apiVersion": ""},
        {"apiVersion": None},
        {"apiVersion": 1},
        {"kind": "${kind}"},
        {"kind": "Config Map"},
        {"kind": "Config_Map"},
        {"kind": "Deployment\n"},
        {"kind": ""},
        {"kind": ["ConfigMap"]},
    ],
)
def test_a_kind_is_said_plainly(wrong: Object) -> None:
    assert problem(config() | wrong) == (
        "apiVersion and kind must be those of a kind, without expressions"
    )


@pytest.mark.parametrize(
    "name",
    ["${nodes.a.name}", "a/b", "a%2fb", "", " ", "a b", "a\n", "x" * 254, ".", "..", None, 7, []],
)
def test_case_90_a_name_is_plain_and_not_too_long(name: object) -> None:
    found = problem({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    assert found.startswith("metadata.name must be a plain name")


@pytest.mark.parametrize("metadata", [None, [], "name", {}, {"generateName": "a-"}])
def test_case_90_an_object_needs_metadata_with_a_name(metadata: object) -> None:
    found = problem({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert found.startswith("metadata.name must be a plain name")


@pytest.mark.parametrize("name", ["a", "x" * 253, "system:node", "a_b", "...", "A.b", "täglich"])
def test_names_of_all_kinds_of_kinds_are_accepted(name: str) -> None:
    accepted(node("it", config(name)))


@pytest.mark.parametrize("namespace", ["${ns}", "a_b", "a/b", "..", "A", "x" * 64, 5, ["a"]])
def test_case_90_a_namespace_is_a_plain_name(namespace: object) -> None:
    """An underscore in it would make another object of an inventory's entry."""
    assert problem(config(namespace=namespace)).startswith("metadata.namespace must be")


@pytest.mark.parametrize("namespace", ["a", "a-b", "0", "x" * 63, "", None])
def test_a_namespace_may_be_named_or_left_out(namespace: object) -> None:
    accepted(node("it", config(namespace=namespace)))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"ownerReferences": [{"uid": "foreign"}]}, "metadata.ownerReferences is not allowed"),
        ({"finalizers": ["example.org/x"]}, "metadata.finalizers is not allowed"),
        ({"generateName": "a-"}, "metadata.generateName is not allowed"),
        ({"labels": {GRAPH_LABEL: "mine"}}, "the label pequod.io/graph is ours"),
        ({"labels": {GRAPH_LABEL: ""}}, "the label pequod.io/graph is ours"),
        ({"labels": ["a"]}, "metadata.labels must be a map of strings"),
        ({"labels": {"a": 1}}, "metadata.labels must be a map of strings"),
        ({"labels": {"a": None}}, "metadata.labels must be a map of strings"),
        ({"annotations": "a"}, "metadata.annotations must be a map of strings"),
        ({"annotations": {"a": True}}, "metadata.annotations must be a map of strings"),
    ],
)
def test_case_90_metadata_that_is_not_theirs_to_bring_is_refused(
    metadata: Object, expected: str
) -> None:
    assert problem(config(**metadata)).startswith(expected)


def test_case_90_empty_metadata_is_no_metadata() -> None:
    accepted(node("it", config(ownerReferences=[], finalizers=[], labels=None, annotations=None)))


def test_case_90_what_an_export_leaves_behind_is_no_reason_to_refuse() -> None:
    exported = config(
        uid="x", resourceVersion="1", managedFields=[], creationTimestamp=None, generation=3
    )
    accepted(node("it", exported | {"status": {"phase": "Active"}}))


@pytest.mark.parametrize("part", ["data", "stringData"])
def test_data_of_a_secret_does_not_stand_in_a_graph(part: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}}
    assert problem(secret | {part: {"a": "canary"}}).startswith(f"{part} of a Secret must not")
    assert "canary" not in problem(secret | {part: {"a": "canary"}})
    accepted(node("it", secret | {part: {}, "type": "Opaque"}))


def test_a_secret_of_another_group_is_somebody_elses_business() -> None:
    custom = {"apiVersion": "example.org/v1", "kind": "Secret", "metadata": {"name": "it"}}
    accepted(node("it", custom | {"data": {"a": "b"}}))


def test_a_list_is_told_to_become_nodes() -> None:
    found = problem(config() | {"kind": "ConfigMapList", "items": []})
    assert found == "ConfigMapList is a list: make a node of each of its items"
    accepted(node("it", config() | {"kind": "AllowList", "items": {"a": 1}}))


def test_values_of_a_node_that_is_not_there_are_refused_with_place_and_expression() -> None:
    values = [{"deep": ["port ${nodes.db.status.port}"]}]
    assert problem(config() | {"data": values}) == (
        "${nodes.db.status.port} at data[0].deep[0] mentions db, which is no node of the graph: "
        "name one, or write $${ for a plain ${"
    )
    accepted(node("it", config() | {"data": {"a": "${HOME} $(nodes) ${node"}}))


@pytest.mark.parametrize("kind", [dict, list])
def test_nesting_has_a_limit(kind: type) -> None:
    value: object = "x"
    for _ in range(MAX_DEPTH - 2):
        value = {"a": value} if kind is dict else [value]
    accepted(node("it", config() | {"data": {"a": value}}))
    assert problem(config() | {"data": {"a": {"b": value}}}) == (
        "the object is nested deeper than 64 levels"
    )


def test_case_90_an_object_of_a_mebibyte_is_refused() -> None:
    found = problems(filled("it", KIB * KIB))
    assert found[0] == "node it: the object is larger than 512 KiB"
    assert found[1].startswith("the nodes take 1025 KiB and may take 768")
    accepted(filled("it", MAX_OBJECT_BYTES - 200))


def test_case_90_a_hundred_thousand_objects_are_refused() -> None:
    one = node("it")
    found = problems(*[one] * 100_000)
    assert "the graph has 100000 nodes and may have 1000: split it" in found


def test_the_nodes_have_a_limit_together() -> None:
    (found,) = problems(*(filled(f"n{i}", 200 * KIB) for i in range(4)))
    assert found == "the nodes take 801 KiB and may take 768: split them up"


def test_a_thousand_nodes_are_a_graph_and_worth_a_warning() -> None:
    plan = accepted(*(node(f"n{i}") for i in range(1000)))
    assert plan.warnings[0] == (
        "the graph has 1000 of 1000 nodes: split it before it reaches the limit"
    )


def test_long_names_can_make_a_status_too_large() -> None:
    (found,) = problems(*(node(f"n{i}", config(f"{i}".rjust(253, "x"))) for i in range(1000)))
    assert found.startswith("what the status would have to say takes ")
    assert found.endswith("and may take 384: split the graph, or use shorter names")


@pytest.mark.parametrize(("count", "warned"), [(799, 0), (800, 1), (801, 1)])
def test_warnings_begin_at_four_fifths_of_a_limit(count: int, warned: int) -> None:
    found = accepted(*(node(f"n{i}") for i in range(count))).warnings
    assert sum("1000 nodes: split it before" in one for one in found) == warned


def test_size_is_warned_of_as_well() -> None:
    (found,) = accepted(*(filled(f"n{i}", 210 * KIB) for i in range(3))).warnings
    assert found == "the graph has 631 of 768 KiB of nodes: split it before it reaches the limit"


@pytest.mark.parametrize(
    ("ref", "id_", "text"),
    [
        (Ref("apps", "Deployment", "web", "api"), "web_api_apps_Deployment", "Deployment/web/api"),
        (Ref("", "ConfigMap", "web", "a"), "web_a__ConfigMap", "ConfigMap/web/a"),
        (Ref("", "Namespace", "", "web"), "_web__Namespace", "Namespace/web"),
        (Ref("", "Role", "web", "system:a_b"), "web_system:a_b__Role", "Role/web/system:a_b"),
        (Ref("x.io", "Widget", "", "_a_"), "__a__x.io_Widget", "Widget/_a_"),
    ],
)
def test_an_inventory_names_objects_so_that_they_are_found_again(
    ref: Ref, id_: str, text: str
) -> None:
    assert ref.id == id_
    assert Ref.of(id_) == ref
    assert str(ref) == text
