"""How two versions of an object differ, as a person reads it."""

from typing import Any

import pytest

from pequod.graph.differences import (
    HIDDEN,
    LONGEST_VALUE,
    Difference,
    comparable,
    described,
    differences,
)

Object = dict[str, Any]


def told(before: Object, after: Object) -> list[str]:
    return [str(one) for one in differences(before, after)]


def pod(*containers: Object) -> Object:
    return {"spec": {"containers": [*containers]}}


def test_equal_objects_do_not_differ() -> None:
    assert differences({"a": {"b": [1, {"c": None}]}}, {"a": {"b": [1, {"c": None}]}}) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, "a: 1 -> 2"),
        ({}, {"a": {"b": 1}}, 'a: added {"b":1}'),
        ({"a": "x"}, {}, 'a: removed "x"'),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, "a.b.c: 1 -> 2"),
        ({"a": None}, {}, "a: removed null"),
        ({"a": None}, {"a": {}}, "a: null -> {}"),
        ({"a": 1}, {"a": True}, "a: 1 -> true"),
        ({"a": [1]}, {"a": [True]}, "a: [1] -> [true]"),
        ({"a": {"b": 1}}, {"a": [1]}, 'a: {"b":1} -> [1]'),
        ({"a": ["x", "y"]}, {"a": ["x"]}, 'a: ["x","y"] -> ["x"]'),
        ({"a": {"x.io/y": "1"}}, {"a": {"x.io/y": "2"}}, 'a["x.io/y"]: "1" -> "2"'),
    ],
)
def test_a_field_is_told_with_its_path_and_both_values(
    before: Object, after: Object, expected: str
) -> None:
    assert told(before, after) == [expected]


def test_fields_are_told_in_the_order_of_their_names() -> None:
    assert told({"b": 1, "a": 1, "c": 1}, {"c": 2, "a": 2, "b": 1}) == ["a: 1 -> 2", "c: 1 -> 2"]


def test_items_with_names_are_compared_with_their_namesakes() -> None:
    before = pod({"name": "app", "image": "app:1"}, {"name": "old", "image": "x"})
    after = pod({"name": "new", "image": "y"}, {"name": "app", "image": "app:2"})
    assert told(before, after) == [
        'spec.containers[name=app].image: "app:1" -> "app:2"',
        'spec.containers[name=old]: removed {"image":"x","name":"old"}',
        'spec.containers[name=new]: added {"image":"y","name":"new"}',
    ]


def test_items_that_only_changed_places_are_told_so() -> None:
    """Environment variables may refer to those before them."""
    one, other = {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}
    before, after = {"env": [one, other]}, {"env": [other, one]}
    assert told(before, after) == ['env (order): ["A","B"] -> ["B","A"]']


@pytest.mark.parametrize(
    ("key", "values"),
    [("mountPath", ("/a", "/b")), ("containerPort", (80, 81)), ("ip", ("10.0.0.1", "10.0.0.2"))],
)
def test_items_are_told_apart_by_other_keys_too(key: str, values: tuple[object, object]) -> None:
    before = {"items": [{key: values[0], "x": 1}, {key: values[1], "x": 1}]}
    after = {"items": [{key: values[0], "x": 1}, {key: values[1], "x": 2}]}
    assert told(before, after) == [f"items[{key}={values[1]}].x: 1 -> 2"]


def test_items_whose_names_are_not_their_own_are_compared_by_their_places() -> None:
    before = {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}
    after = {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "SCTP"}]}
    assert told(before, after) == ['ports[1].protocol: "UDP" -> "SCTP"']


def test_lists_of_another_length_without_names_are_told_as_a_whole() -> None:
    before: Object = {"rules": [{"verbs": ["get"]}]}
    after: Object = {"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}
    assert told(before, after) == [
        'rules: [{"verbs":["get"]}] -> [{"verbs":["get"]},{"verbs":["list"]}]'
    ]


def test_values_are_cut_and_kept_on_one_line() -> None:
    (found,) = differences({"a": "x"}, {"a": "y\n" * 100})
    assert found.after is not None
    assert len(found.after) <= LONGEST_VALUE + 1
    assert "\n" not in found.after


def test_hidden_values_do_not_show_but_whether_there_is_one_does() -> None:
    found = differences({"a": "secret", "b": "x"}, {"a": "other", "c": "y"}, hidden=True)
    assert found == (
        Difference("a", HIDDEN, HIDDEN),
        Difference("b", HIDDEN, None),
        Difference("c", None, HIDDEN),
    )


def test_what_is_nested_too_deep_is_told_as_a_whole() -> None:
    before: Object = {"x": 1}
    after: Object = {"x": 2}
    for _ in range(200):
        before, after = {"a": before}, {"a": after}
    (found,) = differences(before, after)
    assert found.path.count("a") == 64


def test_only_what_people_ask_for_is_compared() -> None:
    live = {
        "kind": "ConfigMap",
        "metadata": {
            "name": "web",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "creationTimestamp": "2026-11-15T10:00:00Z",
            "managedFields": [{}],
            "labels": {"pequod.io/graph": "g", "app": "web"},
            "annotations": {},
        },
        "data": {"a": "1"},
        "status": {"x": 1},
    }
    assert comparable(live) == {
        "kind": "ConfigMap",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "data": {"a": "1"},
    }
    only_ours = {"metadata": {"name": "web", "labels": {"pequod.io/graph": "g"}}}
    assert comparable(only_ours) == {"metadata": {"name": "web"}}


def test_a_list_of_differences_says_how_many_it_does_not_show() -> None:
    found = differences({}, {f"field{number}": number for number in range(9)})
    text = described(found, longest=40)
    assert text == "field0: added 0; field1: added 1; and 7 more"
    assert described(found[:1], longest=1) == "field0: added 0"
    assert described(()) == ""
