"""Values that nodes take from each other: what is an expression, and what becomes of it."""

from typing import Any

import pytest

from pequod.api.graph import InventoryEntry, Node
from pequod.graph.model import InvalidGraphError, Plan, checked
from pequod.graph.prune import Order
from pequod.graph.values import (
    MAX_EXPRESSION,
    MAX_PLACES,
    Template,
    UnfitValueError,
    described,
    template,
)

Object = dict[str, Any]


def config(name: str = "it", **data: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def found(text: str) -> Template | None:
    return template(config(text=text))


def expressions(text: str) -> list[str]:
    made = found(text)
    return [one.text for one in made.expressions] if made is not None else []


def cel(text: str) -> str:
    made = found(text)
    assert made is not None
    assert not made.problems
    (only,) = made.expressions
    return only.cel


def filled(text: str, **values: object) -> object:
    """A string with values; the names of the values are those of the nodes in `nodes.<id>.x`."""
    made = found(text)
    assert made is not None
    assert not made.problems
    known = {f"nodes.{id_}.x": value for id_, value in values.items()}
    return made.filled(config(text=text), known)["data"]["text"]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("${nodes.db.status.host}", "nodes.db.status.host"),
        ("${ nodes.db.status.host }", " nodes.db.status.host "),
        ("a ${string(nodes.db.spec.port)} b", "string(nodes.db.spec.port)"),
        ('${nodes.a.status.ready ? "x" : "y"}', 'nodes.a.status.ready ? "x" : "y"'),
        ("${has(nodes.a.x) ? nodes.a.x : {'b': 1}.b}", "has(nodes.a.x) ? nodes.a.x : {'b': 1}.b"),
        ("${nodes.a.x + '}'}", "nodes.a.x + '}'"),
        ("${nodes.a.x + '\\'}'}", "nodes.a.x + '\\'}'"),
        ('${nodes.a.x + r"\\"}', 'nodes.a.x + r"\\"'),
        ('${nodes.a.x + """a "}" b"""}', 'nodes.a.x + """a "}" b"""'),
        ("${nodes.a.x.map(y, y + 1)[0]}", "nodes.a.x.map(y, y + 1)[0]"),
        ('${"$" + nodes.a.x}', '"$" + nodes.a.x'),
        ('${nodes["a"].x}', 'nodes["a"].x'),
        ("${nodes.a.x\n + 1}", "nodes.a.x\n + 1"),
    ],
)
def test_what_mentions_a_node_is_an_expression_up_to_its_own_brace(text: str, inside: str) -> None:
    assert expressions(text) == [inside]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "${HOME}",
        "${HOME:-/root}/nodes.txt",
        "${HOME:-it's}",
        "${nodes}",
        "${nodes[@]}",
        "${nodes[0]}",
        "${#nodes[@]}",
        "${mynodes.db.x}",
        "${pods.nodes.db}",
        "${pods.?nodes.db}",
        '${"nodes.db.x"}',
        "${VALUE:-$(kubectl get nodes.metrics)}",
        "$nodes.db.x",
        "${",
        "${}",
        "}${{{",
        "$${HOME} and $$$",
        "{{ .Values.nodes.db }}",
    ],
)
def test_what_does_not_mention_a_node_stays_to_the_letter(text: str) -> None:
    assert found(text) is None


def test_a_script_keeps_its_own_variables_around_an_expression() -> None:
    script = "x=${HOME:-it's}\necho ${x} it's $${y} ${nodes.db.x} }\necho ${#nodes[@]} '${z}'"
    assert expressions(script) == ["nodes.db.x"]
    assert filled(script, db="here") == script.replace("${nodes.db.x}", "here")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("$${nodes.db.x}", "${nodes.db.x}"),
        ("a $${nodes.db.x} b", "a ${nodes.db.x} b"),
        ("$$${nodes.db.x}", "$${nodes.db.x}"),
        ("$${nodes.db.x", "${nodes.db.x"),
        ("$${nodes.nowhere.x}$${HOME}", "${nodes.nowhere.x}$${HOME}"),
        ("$${string(nodes.db.x)}", "${string(nodes.db.x)}"),
    ],
)
def test_a_second_dollar_makes_a_plain_text_of_an_expression(text: str, plain: str) -> None:
    made = found(text)
    assert made is not None
    assert not made.sources
    assert made.blanked(config(text=text)) == config(text=plain)
    (node,) = checked([Node(id="it", object=config(text=text))])
    assert node.object == config(text=text), "what is stored is not touched"


def test_an_escape_and_an_expression_stand_side_by_side() -> None:
    assert filled("$${nodes.db.x}=${nodes.db.x}$${nodes.db.x}", db=1) == (
        "${nodes.db.x}=1${nodes.db.x}"
    )


def test_a_value_with_an_expression_in_it_is_not_evaluated_again() -> None:
    assert filled("<${nodes.a.x}>", a="${nodes.b.x} $${nodes.b.x}") == (
        "<${nodes.b.x} $${nodes.b.x}>"
    )


@pytest.mark.parametrize("value", [5432, 0.5, True, "text", "5", [1, {"a": 2}], {"a": [None]}])
def test_the_value_of_a_single_expression_keeps_its_type(value: object) -> None:
    assert filled("${nodes.db.x}", db=value) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (5432, "5432"), (True, "true"), (False, "false"), (0.5, "0.5"), (-3, "-3")],
)
def test_inside_of_a_string_a_value_becomes_a_string(value: object, text: str) -> None:
    assert filled("<${nodes.db.x}>", db=value) == f"<{text}>"
    assert filled(" ${nodes.db.x}", db=value) == f" {text}", "a space is a string as well"


@pytest.mark.parametrize(("value", "what"), [([1], "a list"), ({"a": 1}, "a map")])
def test_lists_and_maps_cannot_stand_inside_of_a_string(value: object, what: str) -> None:
    with pytest.raises(UnfitValueError, match=rf"\$\{{nodes.db.x\}} at data.text is {what}"):
        filled("<${nodes.db.x}>", db=value)


def test_several_values_in_one_string() -> None:
    text = "postgres://${nodes.db.x}:${nodes.port.x}/${nodes.db.x}"
    assert filled(text, db="here", port=5432) == "postgres://here:5432/here"


@pytest.mark.parametrize(
    ("text", "evaluated"),
    [
        ("${nodes.my-db.status.host}", 'nodes["my-db"].status.host'),
        ("${nodes.namespace.status.phase}", 'nodes["namespace"].status.phase'),
        ("${nodes.in.x}", 'nodes["in"].x'),
        ("${nodes['my-db'].x}", 'nodes["my-db"].x'),
        ('${nodes [ "my-db" ] .x}', 'nodes["my-db"] .x'),
        ("${nodes.a-1.x-nodes.b-2.x}", 'nodes["a-1"].x-nodes["b-2"].x'),
        ("${'nodes.my-db.x' + nodes.my-db.x}", "'nodes.my-db.x' + nodes[\"my-db\"].x"),
        ("${nodes.a.nodes.my.x}", 'nodes["a"].nodes.my.x'),
        ("${nodes.a . nodes.my.x}", 'nodes["a"] . nodes.my.x'),
        ("${nodes.a.x.exists(y, y == nodes.b_c.x)}", 'nodes["a"].x.exists(y, y == nodes["b_c"].x)'),
    ],
)
def test_ids_are_written_so_that_cel_understands_them(text: str, evaluated: str) -> None:
    assert cel(text) == evaluated


def test_every_string_of_an_object_is_looked_at_but_what_names_it() -> None:
    made = template(
        {
            "apiVersion": "${nodes.a.x}",
            "kind": "${nodes.a.x}",
            "metadata": {
                "name": "${nodes.a.x}",
                "namespace": "${nodes.a.x}",
                "labels": {"l": "${nodes.b.x}"},
                "annotations": {"example.org/name": "${nodes.c.x}"},
            },
            "spec": {"list": [{"name": "x"}, {"value": "${nodes.d.x}"}], "name": "${nodes.e.x}"},
            "status": {"host": "${nodes.f.x}"},
        }
    )
    assert made is not None
    assert [(str(place), place.expressions[0].nodes[0]) for place in made.places] == [
        ("metadata.labels.l", "b"),
        ('metadata.annotations["example.org/name"]', "c"),
        ("spec.list[1].value", "d"),
        ("spec.name", "e"),
    ]
    assert made.sources == ("b", "c", "d", "e")


def test_a_path_is_written_for_people() -> None:
    assert described(("spec", "a.b", 0, "c-d", 12)) == 'spec["a.b"][0].c-d[12]'


def test_filling_leaves_the_stored_object_alone() -> None:
    object_ = {"spec": {"list": ["${nodes.a.x}", "b"], "other": {"c": 1}}}
    made = template(object_)
    assert made is not None
    whole = made.filled(object_, {"nodes.a.x": {"y": 1}})
    assert whole == {"spec": {"list": [{"y": 1}, "b"], "other": {"c": 1}}}
    assert made.blanked(object_) == {"spec": {"list": ["", "b"], "other": {"c": 1}}}
    assert object_ == {"spec": {"list": ["${nodes.a.x}", "b"], "other": {"c": 1}}}


def node(id_: str, text: str = "", depends_on: tuple[str, ...] = (), **rest: Any) -> Node:  # noqa: ANN401
    return Node(id=id_, object=config(id_, text=text), depends_on=depends_on, **rest)


def problems(*nodes: Node) -> tuple[str, ...]:
    with pytest.raises(InvalidGraphError) as caught:
        checked(nodes)
    return caught.value.problems


def plan(*nodes: Node) -> Plan:
    return checked(nodes)


def test_who_takes_a_value_depends_on_where_it_comes_from() -> None:
    nodes = (
        node("app", "${nodes.settings.data.x} ${nodes.db.data.x}", depends_on=("first",)),
        node("settings", "${nodes.db.data.x + nodes.db.data.y}"),
        node("db"),
        node("first"),
    )
    made = plan(*nodes)
    assert made.edges == {
        "app": ("first", "settings", "db"),
        "settings": ("db",),
        "db": (),
        "first": (),
    }
    assert made.order.index("db") < made.order.index("settings") < made.order.index("app")
    assert made.levels == {"db": 0, "first": 0, "settings": 1, "app": 2}
    assert set(made.dependents["db"]) == {"app", "settings"}
    assert made.sources == {"db", "settings"}
    assert [one.depends_on for one in made] == [
        {one.id: one for one in nodes}[id_].depends_on for id_ in made.order
    ]


def test_a_plan_of_nodes_that_were_read_anew_knows_their_values() -> None:
    nodes = (node("app", "${nodes.db.data.x}"), node("db"))
    again = plan(*nodes).over(()).over(nodes)
    assert again.edges == {"app": ("db",), "db": ()}
    assert again.templates["app"].sources == ("db",)


def test_what_takes_values_goes_before_what_they_come_from() -> None:
    made = plan(node("app", "${nodes.db.data.x}"), node("db"))
    entries = [
        InventoryEntry(id=f"shop_{id_}__ConfigMap", version="v1", node=id_, uid=id_)
        for id_ in ("db", "app")
    ]
    order = Order(entries, made)
    assert order.next({"shop_db__ConfigMap", "shop_app__ConfigMap"}) == ["shop_app__ConfigMap"]
    assert order.next({"shop_db__ConfigMap"}) == ["shop_db__ConfigMap"]


def test_a_node_that_is_not_there_is_named_with_place_and_expression() -> None:
    assert problems(node("app", "http://${nodes.dbx.data.x}/"), node("db")) == (
        "node app: ${nodes.dbx.data.x} at data.text mentions dbx, which is no node of the graph: "
        "name one, or write $${ for a plain ${",
    )


def test_a_node_cannot_take_values_from_itself() -> None:
    assert problems(node("app", "${nodes.app.metadata.uid}")) == (
        "node app: ${nodes.app.metadata.uid} at data.text mentions the node itself: a node can "
        "only take values from others",
    )


def test_a_circle_of_values_is_a_circle() -> None:
    (found_,) = problems(node("a", "${nodes.b.data.x}"), node("b", depends_on=("a",)))
    assert "a → b → a" in found_ or "b → a → b" in found_
    assert "remove one dependsOn or ${nodes.…} of these" in found_


def test_a_secret_is_not_copied_to_where_everybody_can_read_it() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}}
    (found_,) = problems(
        node("app", "${nodes.password.data.x}"), Node(id="password", object=secret)
    )
    assert found_.startswith("node app: ${nodes.password.data.x} at data.text would copy")
    assert "secretKeyRef" in found_


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${nodes.db.x", "is not closed"),
        ("${nodes.db.x + 'a}", "is not closed"),
        ("${string(nodes.db.x)", "is not closed"),
        ("${nodes.db.x # no}", "is no CEL"),
        ("${nodes.?db.x}", "must name nodes as nodes.<id>"),
        ("${nodes.}", "must name nodes as nodes.<id>"),
        ("${nodes.db.x + size(nodes)}", "must name nodes as nodes.<id>"),
        ("${nodes[nodes.db.x].y}", "must name nodes as nodes.<id>"),
        (f"${{nodes.db.x + '{'x' * MAX_EXPRESSION}'}}", "is longer than 4096 characters"),
    ],
)
def test_what_was_meant_as_an_expression_and_is_none_is_refused(text: str, said: str) -> None:
    (problem,) = problems(node("app", text), node("db"))
    assert problem.startswith("node app: ${")
    assert said in problem
    assert "at data.text" in problem
    assert "$${" in problem
    assert len(problem) < 500


def test_keys_are_not_filled_in() -> None:
    object_ = config() | {"data": {"${nodes.db.x}": "a"}}
    (problem,) = problems(Node(id="app", object=object_), node("db"))
    assert problem == 'node app: data["${nodes.db.x}"] is a key: only values can be filled in'


def test_an_object_holds_only_so_many_expressions() -> None:
    data = {f"k{index}": "${nodes.db.x}" for index in range(MAX_PLACES + 1)}
    (problem,) = problems(Node(id="app", object=config(**data)), node("db"))
    assert problem == "node app: 257 strings hold expressions and 256 may: use fewer"


def test_metadata_that_is_reserved_is_refused_before_it_is_filled_in() -> None:
    object_ = config() | {
        "metadata": {
            "name": "it",
            "labels": "${nodes.db.metadata.labels}",
            "finalizers": "${nodes.db.x}",
        }
    }
    assert problems(Node(id="app", object=object_), node("db")) == (
        "node app: metadata.finalizers is not allowed: nobody would take them off again",
        "node app: metadata.labels must be a map of strings",
    )


def test_a_large_text_that_is_full_of_braces_is_read_in_no_time() -> None:
    for piece in ("${", "${{", "${'", "${'''", '${"', "${a(", "$${", "${nodes[", "`${`", "${a?"):
        assert found((piece * 50 + "$ nodes ") * (100_000 // (50 * len(piece)))) is None
