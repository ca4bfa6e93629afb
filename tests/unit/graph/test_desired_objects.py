"""What is sent for a node: its object, with what is ours, and without what is not its own."""

import copy
from base64 import b64encode
from typing import Any

import pytest

from pequod.api import reasons
from pequod.graph.desired import (
    Desired,
    UnusableObjectError,
    desired,
    reference,
)
from pequod.graph.model import GRAPH_LABEL, LAST_APPLIED, MANAGED_BY, Ref
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, Kind

Object = dict[str, Any]

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")


def deployment(**metadata: object) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", **metadata},
        "spec": {"replicas": 2},
    }


def secret(**parts: object) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, **parts}


def sent(object_: Object, kind: Kind = DEPLOYMENTS) -> Desired:
    before = copy.deepcopy(object_)
    made = desired(object_, kind, namespace="shop", graph="uid-of-graph")
    assert object_ == before
    return made


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def test_an_object_gets_its_namespace_and_our_labels() -> None:
    made = sent(deployment())
    assert made.ref == Ref("apps", "Deployment", "shop", "web")
    assert made.kind == DEPLOYMENTS
    assert made.body == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {MANAGED_BY: "pequod", GRAPH_LABEL: "uid-of-graph"},
        },
        "spec": {"replicas": 2},
    }


def test_an_object_may_name_another_namespace() -> None:
    made = sent(deployment(namespace="other"))
    assert made.ref.namespace == "other"
    assert made.body["metadata"]["namespace"] == "other"


@pytest.mark.parametrize("namespace", ["", None])
def test_no_namespace_is_that_of_the_graph(namespace: object) -> None:
    assert sent(deployment(namespace=namespace)).ref.namespace == "shop"


def test_who_manages_an_object_is_said_only_where_nobody_has_said_it() -> None:
    labels = sent(deployment(labels={MANAGED_BY: "helm", "app": "web"})).body["metadata"]["labels"]
    assert labels == {MANAGED_BY: "helm", "app": "web", GRAPH_LABEL: "uid-of-graph"}


def test_the_label_of_the_graph_is_ours_whatever_the_object_says() -> None:
    labels = sent(deployment(labels={GRAPH_LABEL: "forged"})).body["metadata"]["labels"]
    assert labels[GRAPH_LABEL] == "uid-of-graph"


def test_case_90_what_is_not_an_objects_own_is_taken_off() -> None:
    exported = deployment(
        uid="x",
        resourceVersion="7",
        generation=3,
        creationTimestamp="2026-01-01T00:00:00Z",
        deletionTimestamp="2026-01-01T00:00:00Z",
        selfLink="/x",
        managedFields=[{"manager": "pequod-operator"}],
        ownerReferences=[],
        annotations={LAST_APPLIED: "{}", "a": "b"},
    )
    body = sent(exported | {"status": {"replicas": 2}}).body
    assert "status" not in body
    assert body["metadata"].keys() == {"name", "namespace", "labels", "annotations"}
    assert body["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize("annotations", [{LAST_APPLIED: "{}"}, {}, None])
def test_no_annotations_are_not_an_empty_map(annotations: object) -> None:
    """An empty map would be ours as a whole, and everybody's annotations with it."""
    assert "annotations" not in sent(deployment(annotations=annotations)).body["metadata"]


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    made = sent({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}, NAMESPACES)
    assert made.ref == Ref("", "Namespace", "", "web")
    assert "namespace" not in made.body["metadata"]


def test_a_cluster_scoped_object_with_a_namespace_is_refused() -> None:
    object_ = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "b"}}
    with pytest.raises(UnusableObjectError, match=r"remove metadata\.namespace from a") as caught:
        reference(object_, NAMESPACES, "shop")
    assert caught.value.reason == reasons.INVALID


def test_a_known_object_is_changed_by_its_uid_and_an_unknown_one_only_created() -> None:
    made = sent(deployment())
    before = copy.deepcopy(made.body)
    changed = made.with_precondition("uid-of-object")
    created = made.with_precondition("")
    assert changed["metadata"] == before["metadata"] | {"uid": "uid-of-object"}
    assert created["metadata"] == before["metadata"] | {"resourceVersion": "1"}
    assert changed["spec"] == created["spec"] == before["spec"]
    assert made.body == before


def test_string_data_of_a_secret_becomes_data_and_wins() -> None:
    data = {"a": encoded("old"), "b": encoded("kept")}
    body = sent(secret(data=data, stringData={"a": "new", "c": "ü"}), SECRETS).body
    assert "stringData" not in body
    assert body["data"] == {"a": encoded("new"), "b": encoded("kept"), "c": encoded("ü")}


@pytest.mark.parametrize("data", [None, {}])
def test_string_data_alone_becomes_data(data: object) -> None:
    body = sent(secret(data=data, stringData={"a": "x"}), SECRETS).body
    assert body["data"] == {"a": encoded("x")}


def test_only_secrets_have_string_data() -> None:
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}}
    assert sent(object_ | {"stringData": {"a": "b"}}, CONFIG_MAPS).body["stringData"] == {"a": "b"}


@pytest.mark.parametrize(
    "parts",
    [
        {"stringData": "canary"},
        {"stringData": ["canary"]},
        {"stringData": {"a": "b"}, "data": "canary"},
        {"stringData": {"a": 5}},
        {"stringData": {"a": None}},
        {"stringData": {"a": ["canary"]}},
    ],
)
def test_a_secret_of_another_shape_is_refused_without_showing_it(parts: Object) -> None:
    with pytest.raises(UnusableObjectError, match="of a Secret must be") as caught:
        sent(secret(**parts), SECRETS)
    assert "canary" not in str(caught.value)
