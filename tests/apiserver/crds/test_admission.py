"""Who may write graphs: what the admission policy refuses, in which words; what it lets pass."""

import copy
from typing import Any

import pytest

from clusters import Answer, Api
from instances import eventually
from schemas import ROOT, kinds, load

GRAPH = kinds()["ResourceGraph"]
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
SOURCE = "Transform/default/complete"
NEW_SOURCE = (
    "only the operator makes graphs for a source: create or edit {}"
    " instead, or leave out spec.sourceRef"
)
CHANGED = f"only the operator changes this graph, which is made from {SOURCE}: edit that instead"
STATUS = (
    "only the operator writes the status of a graph, because it deletes what the inventory lists:"
    " to have the status brought up to date, change the annotation"
    " reconcile.pequod.io/requestedAt of the graph"
)
INVENTORY = [{"id": "default_shop__ConfigMap", "version": "v1", "uid": "1"}]


@pytest.fixture(autouse=True)
def policy_in_force(api: Api, namespace: str) -> None:
    """A policy takes effect a moment after it was applied."""
    url = GRAPH.collection(namespace)
    eventually(lambda: api.create(url, _sourced(), dry_run=True).code == 403)


@pytest.fixture(params=["administrator", "garbage collector"])
def somebody(request: pytest.FixtureRequest, api: Api) -> Api:
    """Others than the operator, whom RBAC allows everything."""
    if request.param == "administrator":
        return api
    return api.acting_as(COLLECTOR, group="system:masters")


@pytest.fixture
def sourced(as_operator: Api, namespace: str) -> str:
    """Where a graph is that has a source."""
    return _created(as_operator, namespace, _sourced())


@pytest.fixture
def by_hand(api: Api, namespace: str) -> str:
    """Where a graph is that somebody made by hand."""
    return _created(api, namespace, _by_hand())


def _sourced() -> dict[str, Any]:
    return GRAPH.samples()[0]


def _by_hand() -> dict[str, Any]:
    (sample,) = load(ROOT / "deploy/samples/resourcegraph.yaml")
    del sample["metadata"]["namespace"]
    return sample


def _created(api: Api, namespace: str, graph: dict[str, Any]) -> str:
    answer = api.create(GRAPH.collection(namespace), graph)
    assert answer.code == 201, answer.message
    return f"{GRAPH.collection(namespace)}/{graph['metadata']['name']}"


def _owner(api: Api, namespace: str) -> dict[str, str]:
    """A reference to something that exists: the real garbage collector looks on."""
    answer = api.create(
        f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "owner"}}
    )
    uid = answer.body["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}


def _apply(api: Api, url: str, graph: dict[str, Any]) -> Answer:
    query = "?fieldManager=test&force=true"
    return api.call("PATCH", url + query, graph, kind="apply-patch+yaml")


def _replace(api: Api, url: str, changes: dict[str, Any]) -> Answer:
    """A PUT of what is stored, with some parts changed."""
    stored = api.get(url.removesuffix("/status")).body
    for part, values in changes.items():
        stored[part] = stored.get(part, {}) | values
    return api.call("PUT", url, stored)


def _assert_refused(answer: Answer, message: str) -> None:
    assert answer.code == 403, answer.body
    assert answer.body["reason"] == "Forbidden"
    assert answer.message.endswith(f" denied request: {message}")


def test_a_graph_with_a_source_is_made_by_the_operator_only(
    somebody: Api, as_operator: Api, namespace: str
) -> None:
    url, graph = GRAPH.collection(namespace), _sourced()
    _assert_refused(somebody.create(url, graph), NEW_SOURCE.format(SOURCE))
    applied = _apply(somebody, f"{url}/complete", graph)
    _assert_refused(applied, NEW_SOURCE.format(SOURCE))
    assert as_operator.create(url, graph).code == 201


def test_a_source_without_a_namespace_is_named_without_one(api: Api, namespace: str) -> None:
    graph = _sourced()
    graph["spec"]["sourceRef"] = {"apiVersion": "x.io/v1", "kind": "Environment", "name": "blue"}
    answer = api.create(GRAPH.collection(namespace), graph)
    _assert_refused(answer, NEW_SOURCE.format("Environment/blue"))


def test_a_graph_without_a_source_is_anybodys(somebody: Api, namespace: str) -> None:
    url = _created(somebody, namespace, _by_hand())
    assert somebody.patch(url, {"spec": {"suspend": True}}).code == 200
    assert _replace(somebody, url, {"spec": {"deletionPolicy": "Orphan"}}).code == 200
    assert somebody.call("DELETE", url).code == 200


def test_a_source_is_added_by_the_operator_only(
    somebody: Api, as_operator: Api, by_hand: str
) -> None:
    change = {"spec": {"sourceRef": _sourced()["spec"]["sourceRef"]}}
    _assert_refused(somebody.patch(by_hand, change), NEW_SOURCE.format(SOURCE))
    _assert_refused(_replace(somebody, by_hand, change), NEW_SOURCE.format(SOURCE))
    assert as_operator.patch(by_hand, change).code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": []},
        {"serviceAccountName": "another"},
        {"deletionPolicy": "Delete"},
        {"suspend": False},
        {"sourceRef": {**_sourced()["spec"]["sourceRef"], "uid": "another"}},
        {"metadata": {"version": "v9"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_spec_of_a_graph_with_a_source_is_changed_by_the_operator_only(
    change: dict[str, Any], api: Api, as_operator: Api, sourced: str
) -> None:
    _assert_refused(_replace(api, sourced, {"spec": change}), CHANGED)
    graph = _sourced()
    graph["spec"] |= change
    _assert_refused(_apply(api, sourced, graph), CHANGED)
    assert _replace(as_operator, sourced, {"spec": change}).code == 200


def test_a_new_spec_cannot_hide_behind_a_new_label(api: Api, sourced: str) -> None:
    both = {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": False}}
    _assert_refused(api.patch(sourced, both), CHANGED)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"pequod.io/paused": "true"}},
        {"annotations": {"reconcile.pequod.io/requestedAt": "1"}},
        {"finalizers": ["example.com/mine"]},
        {"finalizers": []},
        {"ownerReferences": []},
    ],
    ids=str,
)
def test_everybody_may_write_the_metadata_of_a_graph_with_a_source(
    metadata: dict[str, Any], somebody: Api, as_operator: Api, namespace: str, sourced: str
) -> None:
    full = {
        "finalizers": ["pequod.io/resourcegraph"],
        "ownerReferences": [_owner(as_operator, namespace)],
    }
    assert as_operator.patch(sourced, {"metadata": full}).code == 200
    answer = _replace(somebody, sourced, {"metadata": metadata})
    assert answer.code == 200, answer.message
    assert as_operator.patch(sourced, {"metadata": {"finalizers": None}}).code == 200
    assert somebody.call("DELETE", sourced).code == 200


def test_kubectl_annotates_a_graph_with_a_source_and_is_told_why_it_cannot_edit_it(
    api: Api, namespace: str, sourced: str
) -> None:
    assert sourced
    graph = ("rg", "complete", f"--namespace={namespace}")
    api.kubectl("annotate", *graph, "reconcile.pequod.io/requestedAt=1")
    api.kubectl("label", *graph, "pequod.io/paused=true")
    patch = ("--type=merge", '--patch={"spec": {"suspend": false}}')
    refused = api.kubectl("patch", *graph, *patch, check=False)
    assert refused.returncode != 0
    assert CHANGED in refused.stderr


@pytest.mark.parametrize("graph", ["sourced", "by_hand"])
def test_the_status_of_every_graph_is_written_by_the_operator_only(
    graph: str, request: pytest.FixtureRequest, somebody: Api, as_operator: Api
) -> None:
    url = f"{request.getfixturevalue(graph)}/status"
    status = {"status": {"inventory": INVENTORY}}
    _assert_refused(somebody.patch(url, status), STATUS)
    _assert_refused(_replace(somebody, url, status), STATUS)
    answer = as_operator.patch(url, status)
    assert answer.code == 200, answer.message
    assert answer.body["status"]["inventory"] == INVENTORY


def test_a_status_does_not_come_in_with_the_rest(api: Api, namespace: str, sourced: str) -> None:
    graph = _by_hand() | {"status": {"inventory": INVENTORY}}
    created = api.create(GRAPH.collection(namespace), graph)
    assert created.code == 201, created.message
    assert "inventory" not in created.body["status"]
    updated = _replace(api, sourced, {"status": {"inventory": INVENTORY}})
    assert updated.code == 200, updated.message
    assert "inventory" not in updated.body["status"]


def test_the_largest_graph_is_compared_in_time(api: Api, as_operator: Api, namespace: str) -> None:
    """What a policy may cost is limited, and a graph may have 1,000 nodes and 768 KiB."""
    graph = _sourced()
    node = graph["spec"]["nodes"][1]
    graph["spec"]["nodes"] = [copy.deepcopy(node) | {"id": f"n{at}"} for at in range(1000)]
    for at, large in enumerate(graph["spec"]["nodes"]):
        large["dependsOn"] = []
        large["object"]["spec"]["text"] = f"{at}" + "x" * 250
    url = _created(as_operator, namespace, graph)
    assert api.patch(url, {"metadata": {"labels": {"a": "b"}}}).code == 200
    graph["spec"]["nodes"][-1]["object"]["spec"]["text"] += "x"
    _assert_refused(_replace(api, url, {"spec": graph["spec"]}), CHANGED)
