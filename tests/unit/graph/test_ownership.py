"""Whose fields become ours when an object is adopted.

The entries are as an API server of version 1.36 keeps them.
"""

from typing import Any

import pytest

from pequod.graph.desired import Desired
from pequod.graph.fields import Fields, previous_managers
from pequod.graph.model import Ref
from pequod.graph.ownership import (
    entries,
    is_tool,
    leaves_replicas,
    let_go,
    paths,
    removed,
    taken_over,
    united,
)
from pequod.kube.kinds import Kind

Object = dict[str, Any]
ENV: Fields = {
    "f:env": {
        ".": {},
        'k:{"name":"OLD"}': {".": {}, "f:name": {}, "f:value": {}},
        'k:{"name":"KEPT"}': {".": {}, "f:name": {}, "f:value": {}},
    }
}


def entry(manager: str, fields: Object, operation: str = "Update", **more: str) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": "2026-11-15T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def ours(fields: Object) -> Object:
    made = entry("pequod-operator", fields, "Apply")
    del made["time"]
    return made


@pytest.mark.parametrize(
    "name",
    [
        "kubectl",
        "kubectl-client-side-apply",
        "kubectl-create",
        "kubectl-edit",
        "kubectl-last-applied",
        "kubectl.exe",
        "before-first-apply",
        "helm",
        "Helm",
        "helm-controller",
        "kustomize-controller",
        "argocd-controller",
        "kro.run/applyset",
        "Terraform",
        "pulumi-kubernetes-1a2b3c",
    ],
)
def test_tools_that_apply_what_people_write_are_replaced(name: str) -> None:
    assert is_tool(name)


@pytest.mark.parametrize(
    "name",
    [
        "kube-controller-manager",
        "kubelet",
        "kube-scheduler",
        "cluster-autoscaler",
        "cert-manager-certificates-issuing",
        "manager",
        "somebody",
        "pequod-operator",
        "pequod-handover",
        "my-helm",
    ],
)
def test_controllers_and_strangers_keep_what_is_theirs(name: str) -> None:
    assert not is_tool(name)


def test_the_mark_of_a_restart_stays_where_it_is() -> None:
    """Without it the pods would be restarted once more."""
    assert not is_tool("kubectl-rollout")


def test_everything_of_all_tools_becomes_one_entry_of_ours() -> None:
    controller = entry("kube-controller-manager", {"f:status": {}}, subresource="status")
    known = [
        entry("kubectl-client-side-apply", {"f:spec": {"f:a": {}}, "f:data": {".": {}, "f:x": {}}}),
        controller,
        entry("helm", {"f:spec": {"f:b": {}}, "f:data": {"f:y": {}}}, "Apply"),
    ]
    assert taken_over(known, "apps/v1") == [
        controller,
        ours(
            {
                "f:spec": {"f:a": {}, "f:b": {}},
                "f:data": {".": {}, "f:x": {}, "f:y": {}},
            }
        ),
    ]


def test_what_was_ours_before_stays_so() -> None:
    known = [ours({"f:data": {"f:a": {}}}), entry("kubectl-edit", {"f:data": {"f:b": {}}})]
    assert taken_over(known, "v1") == [
        ours({"f:data": {"f:a": {}, "f:b": {}}}) | {"apiVersion": "v1"}
    ]


def test_there_is_nothing_to_do_twice() -> None:
    known = [entry("helm", {"f:data": {}}), entry("controller", {"f:data": {"f:c": {}}})]
    once = taken_over(known, "v1")
    assert once is not None
    assert taken_over(once, "v1") is None
    assert taken_over([], "v1") is None


def test_what_was_written_to_a_sub_resource_is_not_touched() -> None:
    """Whoever scaled it by hand is asked, as an autoscaler is."""
    scale = entry("kubectl", {"f:spec": {"f:replicas": {}}}, subresource="scale")
    assert taken_over([scale], "apps/v1") is None
    known = [scale, entry("kubectl", {"f:spec": {"f:a": {}}})]
    assert taken_over(known, "apps/v1") == [scale, ours({"f:spec": {"f:a": {}}})]


def test_what_a_node_cannot_name_becomes_nobodys() -> None:
    fields = {
        "f:metadata": {"f:finalizers": {'v:"a"': {}}, "f:ownerReferences": {}, "f:labels": {}},
        "f:status": {"f:a": {}},
    }
    assert taken_over([entry("helm", fields)], "apps/v1") == [
        ours({"f:metadata": {"f:labels": {}}})
    ]
    only: Object = {"f:metadata": {"f:finalizers": {'v:"a"': {}}}}
    assert taken_over([entry("helm", only)], "apps/v1") == [ours({})]


def test_replicas_are_kept_until_somebody_says_how_many() -> None:
    known = [
        entry("helm", {"f:spec": {"f:replicas": {}, "f:a": {}}}),
        entry("pequod-handover", {"f:spec": {"f:replicas": {}}}, "Apply"),
    ]
    found = taken_over(known, "apps/v1", keep_replicas=True)
    handed_over = ours({"f:spec": {"f:replicas": {}}}) | {"manager": "pequod-handover"}
    assert found == [handed_over, ours({"f:spec": {"f:a": {}}})]
    without = taken_over([entry("helm", {"f:spec": {"f:a": {}}})], "v1", keep_replicas=True)
    assert without == [ours({"f:spec": {"f:a": {}}}) | {"apiVersion": "v1"}]


@pytest.mark.parametrize(
    ("group", "kind", "spec", "expected"),
    [
        ("apps", "Deployment", {}, True),
        ("apps", "Deployment", {"replicas": 3}, False),
        ("apps", "DaemonSet", {}, False),
        ("example.com", "Deployment", {}, False),
    ],
)
def test_only_workloads_that_are_scaled_can_leave_their_replicas_to_others(
    group: str, kind: str, spec: Object, *, expected: bool
) -> None:
    served = Kind(group, "v1", kind, f"{kind.lower()}s")
    wanted = Desired(Ref(group, kind, "shop", "web"), served, {"spec": spec})
    assert leaves_replicas(wanted) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {"f:a": {}}, {"f:a": {}}),
        ({"f:a": {}}, {"f:a": {"f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}),
        ({"f:a": {"f:b": {}}}, {"f:a": {}}, {"f:a": {".": {}, "f:b": {}}}),
        ({"f:a": {"f:b": {}}}, {"f:a": {"f:c": {}}}, {"f:a": {"f:b": {}, "f:c": {}}}),
        ({"f:a": {}}, {"f:a": {}}, {"f:a": {}}),
    ],
)
def test_a_field_and_fields_of_it_are_both_kept(
    one: Object, other: Object, expected: Object
) -> None:
    assert united(one, other) == expected
    assert {*paths(united(one, other))} == {*paths(one)} | {*paths(other)}


def test_paths_name_items_and_what_they_hold() -> None:
    assert {*paths(ENV)} >= {
        ("f:env",),
        ("f:env", 'k:{"name":"OLD"}'),
        ("f:env", 'k:{"name":"OLD"}', "f:name"),
    }


def test_what_nobody_manages_any_more_would_go() -> None:
    before = [
        entry("helm", {"f:spec": {**ENV, "f:a": {}}, "f:status": {"f:x": {}}}),
        entry("controller", {"f:spec": {"f:c": {}}}),
    ]
    kept: Object = {
        "f:spec": {"f:env": {'k:{"name":"KEPT"}': {".": {}, "f:name": {}, "f:value": {}}}}
    }
    after = [*before, ours(kept)]
    gone, held = let_go(before, after)
    assert ("f:spec", "f:a") in gone
    assert ("f:status", "f:x") not in gone
    assert ("f:spec", "f:c") in held
    object_: Object = {
        "spec": {
            "a": 1,
            "c": 3,
            "env": [
                {"name": "OLD", "value": "1", "injected": True},
                {"name": "KEPT", "value": "2"},
            ],
        },
        "status": {"x": 1},
    }
    assert removed(object_, gone, held) == {
        "spec": {"c": 3, "env": [{"name": "KEPT", "value": "2"}]},
        "status": {"x": 1},
    }
    assert len(object_["spec"]["env"]) == 2, "the object itself stays as it is"


def test_replicas_that_are_kept_would_not_go() -> None:
    before = [entry("helm", {"f:spec": {"f:replicas": {}}})]
    gone, _ = let_go(before, [], keep_replicas=True)
    assert gone == set()


def test_items_of_a_set_and_whole_lists_go_too() -> None:
    object_ = {"a": ["x", "y"], "b": [1], "c": {"d": {}}}
    gone = {("f:a", 'v:"x"'), ("f:b",), ("f:c", "f:d", "f:none"), ("f:none", "f:x")}
    assert removed(object_, gone, set()) == {"a": ["y"], "c": {"d": {}}}


def test_entries_that_make_no_sense_are_no_entries() -> None:
    assert entries({"managedFields": ["x", {"manager": "a"}]}) == [{"manager": "a"}]
    assert entries({"managedFields": None}) == entries({}) == []
    assert taken_over([{"manager": "helm", "fieldsV1": None}], "apps/v1") == [ours({})]


def test_who_managed_an_object_before() -> None:
    status = entry("kube-controller-manager", {}, subresource="status")
    assert previous_managers({"managedFields": [entry("helm", {}), status]}) == ("helm",)
    assert previous_managers({"managedFields": [ours({}), entry("helm", {})]}) == ("helm",)
    assert previous_managers({"managedFields": [ours({}), status]}) == ("pequod-operator",)
    assert previous_managers({"managedFields": [status]}) == ("kube-controller-manager",)
    assert previous_managers({}) == ("before-first-apply",)
