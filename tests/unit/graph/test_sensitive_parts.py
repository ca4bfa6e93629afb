"""What must stay secret is kept apart from an object, and may only add to it."""

import copy
from typing import Any

import msgspec
import pytest

from pequod.api import reasons
from pequod.graph.desired import UnusableObjectError, split_secret, with_sensitive

Object = dict[str, Any]
WHERE = "Secret/shop/web-values, key web,"
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a"}]}}},
}


def joined(part: object) -> Object:
    before = copy.deepcopy(DEPLOYMENT)
    try:
        return with_sensitive(DEPLOYMENT, msgspec.json.encode(part), where=WHERE)
    finally:
        assert before == DEPLOYMENT


def refusal(part: object) -> str:
    with pytest.raises(UnusableObjectError) as caught:
        joined(part)
    assert caught.value.reason == reasons.INVALID
    assert str(caught.value).startswith(WHERE)
    assert "canary" not in str(caught.value)
    return str(caught.value).removeprefix(f"{WHERE} ")


def test_a_sensitive_part_adds_to_its_object() -> None:
    made = joined({"spec": {"template": {"spec": {"priority": 1}}, "paused": True}, "data": {}})
    assert made == DEPLOYMENT | {
        "spec": {
            "replicas": 2,
            "paused": True,
            "template": {"spec": {"containers": [{"name": "a"}], "priority": 1}},
        },
        "data": {},
    }


def test_nothing_sensitive_leaves_an_object_as_it_is() -> None:
    assert joined({}) == DEPLOYMENT


def test_what_the_object_says_as_well_is_no_replacement() -> None:
    assert joined({"spec": {"replicas": 2}}) == DEPLOYMENT


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"spec": {"replicas": 3}}, ".spec.replicas"),
        ({"spec": "canary"}, ".spec"),
        ({"spec": None}, ".spec"),
        ({"spec": {"template": {"spec": {"containers": ["canary"]}}}}, ".containers"),
        ({"spec": {"template": []}}, ".spec.template"),
        ({"spec": {"replicas": {"canary": 1}}}, ".spec.replicas"),
    ],
)
def test_a_sensitive_part_replaces_nothing(part: Object, place: str) -> None:
    assert f"{place} of the object; it may only add to it" in refusal(part)


@pytest.mark.parametrize("reserved", ["apiVersion", "kind", "metadata", "status"])
def test_what_policies_have_judged_stays_in_the_graph(reserved: str) -> None:
    assert refusal({reserved: DEPLOYMENT.get(reserved)}) == (
        f"must not hold {reserved}: that stays in the graph"
    )


@pytest.mark.parametrize("part", [[], "canary", 5, None, ["canary"]])
def test_a_sensitive_part_is_a_json_object(part: object) -> None:
    assert refusal(part) == "does not hold a JSON object"


@pytest.mark.parametrize("raw", [b"", b"canary", b'{"a":', b"\xff\xfe", b'{"a":' * 5000])
def test_bytes_that_are_no_json_are_refused_without_showing_them(raw: bytes) -> None:
    with pytest.raises(UnusableObjectError, match=r"does not hold a JSON object$") as caught:
        with_sensitive(DEPLOYMENT, raw, where=WHERE)
    assert "canary" not in str(caught.value)


def test_the_data_of_a_rendered_secret_is_split_off() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "it"},
        "type": "Opaque",
        "data": {"a": "Y2FuYXJ5"},
        "stringData": {"b": "canary"},
    }
    before = copy.deepcopy(secret)
    rest, part = split_secret(secret)
    assert secret == before
    assert rest == {name: secret[name] for name in ("apiVersion", "kind", "metadata", "type")}
    assert part == b'{"data":{"a":"Y2FuYXJ5"},"stringData":{"b":"canary"}}'
    assert with_sensitive(rest, part, where=WHERE) == secret


@pytest.mark.parametrize(
    "object_",
    [
        DEPLOYMENT,
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "empty"}, "data": {}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "empty"}, "stringData": None},
        {"apiVersion": "example.org/v1", "kind": "Secret", "data": {"a": "b"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    ],
)
def test_what_holds_no_secret_is_not_split(object_: Object) -> None:
    rest, part = split_secret(object_)
    assert part is None
    assert rest == object_
    assert rest is not object_
