"""Which fields of a live object are ours, and when they count as changed.

The objects are as an API server of version 1.36 returns them.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pequod.graph.digests import Digests
from pequod.graph.fields import managers, our_fields, owns, projected

Object = dict[str, Any]
KEY = bytes(range(32))
DIGESTS = Digests(KEY)


def entry(fields: Object, manager: str = "pequod-operator", operation: str = "Apply") -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": "2026-11-15T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def deployment() -> Object:
    """A Deployment that we applied, with what defaulting, an autoscaler and Istio added."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "0b7c",
            "resourceVersion": "812",
            "generation": 3,
            "creationTimestamp": "2026-11-15T10:00:00Z",
            "labels": {"app": "web", "pequod.io/graph": "g", "team": "theirs"},
            "annotations": {"deployment.kubernetes.io/revision": "2"},
            "managedFields": [
                entry(
                    {
                        "f:metadata": {"f:labels": {"f:app": {}, "f:pequod.io/graph": {}}},
                        "f:spec": {
                            "f:selector": {},
                            "f:template": {
                                "f:metadata": {"f:labels": {"f:app": {}}},
                                "f:spec": {
                                    "f:containers": {
                                        'k:{"name":"app"}': {
                                            ".": {},
                                            "f:args": {},
                                            "f:image": {},
                                            "f:name": {},
                                            "f:ports": {
                                                'k:{"containerPort":80,"protocol":"TCP"}': {
                                                    ".": {},
                                                    "f:containerPort": {},
                                                    "f:name": {},
                                                }
                                            },
                                        }
                                    }
                                },
                            },
                        },
                    }
                ),
                entry({"f:spec": {"f:replicas": {}}}, "vpa", "Update"),
                entry({"f:status": {"f:replicas": {}}}, "kube-controller-manager", "Update")
                | {"subresource": "status"},
            ],
        },
        "spec": {
            "replicas": 2,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"app": "web", "sidecar.istio.io/inject": "true"}},
                "spec": {
                    "containers": [
                        {
                            "name": "app",
                            "image": "web:1",
                            "args": ["--a", "--b"],
                            "imagePullPolicy": "IfNotPresent",
                            "ports": [
                                {"name": "http", "containerPort": 80, "protocol": "TCP"},
                                {"name": "metrics", "containerPort": 90, "protocol": "TCP"},
                            ],
                        },
                        {"name": "istio-proxy", "image": "istio:1"},
                    ],
                    "restartPolicy": "Always",
                },
            },
        },
        "status": {"replicas": 2, "readyReplicas": 2, "observedGeneration": 3},
    }


def service() -> Object:
    ports: Object = {
        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}},
        'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "finalizers": ["ours.io/keep", "service.kubernetes.io/load-balancer-cleanup"],
            "managedFields": [
                entry(
                    {
                        "f:metadata": {"f:finalizers": {".": {}, 'v:"ours.io/keep"': {}}},
                        "f:spec": {"f:ports": ports, "f:selector": {}},
                    }
                )
            ],
        },
        "spec": {
            "clusterIP": "10.0.0.7",
            "selector": {"app": "web"},
            "ports": [
                {"port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30001},
                {"port": 53, "protocol": "UDP", "targetPort": 53},
            ],
        },
    }


def container(object_: Object, index: int = 0) -> Object:
    found: Object = object_["spec"]["template"]["spec"]["containers"][index]
    return found


def changed(object_: Object, change: Callable[[Object], object]) -> bool:
    after = copy.deepcopy(object_)
    change(after)
    assert after != object_, "the test changes nothing"
    return DIGESTS.owned(after) != DIGESTS.owned(object_)


def test_an_object_is_not_changed_by_looking_at_it() -> None:
    before = deployment()
    DIGESTS.owned(before)
    assert before == deployment()


THEIRS: dict[str, Callable[[Object], object]] = {
    "status": lambda o: o["status"].update(readyReplicas=0),
    "resource version": lambda o: o["metadata"].update(resourceVersion="900", generation=4),
    "label": lambda o: o["metadata"]["labels"].update(team="others"),
    "label removed": lambda o: o["metadata"]["labels"].pop("team"),
    "annotation": lambda o: o["metadata"]["annotations"].clear(),
    "replicas": lambda o: o["spec"].update(replicas=7),
    "default": lambda o: o["spec"].update(revisionHistoryLimit=2),
    "sidecar": lambda o: container(o, 1).update(image="istio:2"),
    "another sidecar": lambda o: o["spec"]["template"]["spec"]["containers"].append({"name": "b"}),
    "sidecar removed": lambda o: o["spec"]["template"]["spec"]["containers"].pop(),
    "order of containers": lambda o: o["spec"]["template"]["spec"]["containers"].reverse(),
    "default in our container": lambda o: container(o).update(imagePullPolicy="Always"),
    "a port of theirs": lambda o: container(o)["ports"].pop(),
    "order of ports": lambda o: container(o)["ports"].reverse(),
    "label of the template": lambda o: o["spec"]["template"]["metadata"]["labels"].update(x="y"),
    "other managers": lambda o: o["metadata"]["managedFields"].pop(),
    "order of managers": lambda o: o["metadata"]["managedFields"].reverse(),
    "when we wrote": lambda o: o["metadata"]["managedFields"][0].update(time="2026-12-01"),
}


@pytest.mark.parametrize("what", THEIRS)
def test_what_others_own_does_not_concern_us(what: str) -> None:
    assert not changed(deployment(), THEIRS[what])


OURS: dict[str, Callable[[Object], object]] = {
    "label": lambda o: o["metadata"]["labels"].update(app="api"),
    "label removed": lambda o: o["metadata"]["labels"].pop("pequod.io/graph"),
    "all labels removed": lambda o: o["metadata"].pop("labels"),
    "image": lambda o: container(o).update(image="web:2"),
    "image removed": lambda o: container(o).pop("image"),
    "image of another type": lambda o: container(o).update(image=["web:1"]),
    "image null": lambda o: container(o).update(image=None),
    "args": lambda o: container(o)["args"].append("--c"),
    "order of args": lambda o: container(o)["args"].reverse(),
    "selector": lambda o: o["spec"]["selector"]["matchLabels"].update(more="x"),
    "name of a port": lambda o: container(o)["ports"][0].update(name="https"),
    "port removed": lambda o: container(o)["ports"].pop(0),
    "container removed": lambda o: o["spec"]["template"]["spec"]["containers"].pop(0),
    "containers of another type": lambda o: o["spec"]["template"]["spec"].update(containers={}),
    "spec removed": lambda o: o.pop("spec"),
    "field taken over": lambda o: container(
        {"spec": {"template": {"spec": {"containers": [tree_of_container(o)]}}}}
    ).pop("f:image"),
}


def tree_of_container(object_: Object) -> Object:
    fields = object_["metadata"]["managedFields"][0]["fieldsV1"]
    found: Object = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"app"}']
    return found


@pytest.mark.parametrize("what", OURS)
def test_each_field_of_ours_counts(what: str) -> None:
    assert changed(deployment(), OURS[what])


def test_ports_of_a_service_are_told_apart_by_port_and_protocol() -> None:
    assert not changed(service(), lambda o: o["spec"]["ports"].reverse())
    assert not changed(service(), lambda o: o["spec"]["ports"][0].update(nodePort=30002))
    assert not changed(service(), lambda o: o["spec"]["ports"].append({"port": 80}))
    assert changed(service(), lambda o: o["spec"]["ports"][0].update(targetPort=8081))
    assert changed(service(), lambda o: o["spec"]["ports"][1].update(protocol="TCP"))
    assert changed(service(), lambda o: o["spec"]["ports"].pop())


def test_items_of_a_set_are_ours_one_by_one() -> None:
    assert not changed(service(), lambda o: o["metadata"]["finalizers"].reverse())
    assert not changed(service(), lambda o: o["metadata"]["finalizers"].pop())
    assert changed(service(), lambda o: o["metadata"]["finalizers"].pop(0))
    assert changed(service(), lambda o: o["metadata"].pop("finalizers"))


def test_an_atomic_map_is_ours_as_a_whole() -> None:
    assert changed(service(), lambda o: o["spec"]["selector"].update(more="x"))


def test_items_may_be_named_by_their_place() -> None:
    tree: Object = {"f:items": {"i:1": {}}}
    assert projected({"items": ["a", "b"]}, tree) == [["/f:items/i:1", ["b"]]]
    assert projected({"items": ["a"]}, tree) == [["/f:items/i:1", []]]


def test_an_empty_map_of_ours_is_ours_without_what_others_put_into_it() -> None:
    tree: Object = {"f:data": {".": {}}}
    assert projected({"data": {}}, tree) == projected({"data": {"a": "theirs"}}, tree)
    assert projected({"data": []}, tree) != projected({"data": {}}, tree)
    assert projected({}, tree) != projected({"data": {}}, tree)


def test_a_field_that_is_gone_is_told_apart_from_every_value() -> None:
    tree: Object = {"f:a": {}}
    values: list[Object] = [{}, {"a": None}, {"a": "missing"}, {"a": ["missing"]}, {"a": []}]
    seen = [projected(one, tree) for one in values]
    assert all(one not in seen[:index] for index, one in enumerate(seen))


STEPS = ("k:{", "k:[]", "k:5", "v:", "v:{", "i:x", "i:-1", "i:99", "i:1.5", "x:1", "", "f")
ODD: tuple[object, ...] = (None, 5, "text", [], [5, "a", {"name": "a"}], {}, {"a": 1})


def test_a_path_that_makes_no_sense_leads_to_nothing() -> None:
    for step in (*STEPS, "k:" + "[" * 5000):
        for value in ODD:
            assert projected({"a": value}, {"f:a": {step: {}}}) == [[f"/f:a/{step}", []]]


def test_only_what_we_applied_is_ours() -> None:
    tree: Object = {"f:spec": {}}
    ours = entry(tree)
    others = [
        entry(tree, manager="kubectl"),
        entry(tree, operation="Update"),
        ours | {"subresource": "status"},
        ours | {"fieldsV1": None},
        ours | {"fieldsV1": ["f:spec"]},
        {"manager": "pequod-operator"},
        "pequod-operator",
        None,
    ]
    assert our_fields({"managedFields": others}) == []
    assert our_fields({"managedFields": [*others, ours]}) == [tree]
    assert our_fields({"managedFields": [ours]}, "kubectl") == []


@pytest.mark.parametrize("odd", [None, {}, "x", 5, [[]]])
def test_managed_fields_of_another_shape_are_nobodys(odd: object) -> None:
    assert our_fields({"managedFields": odd}) == []
    assert managers({"managedFields": odd}) == ()


@pytest.mark.parametrize("metadata", [None, [], "x", {}, {"managedFields": []}])
def test_where_nothing_is_ours_there_is_no_digest(metadata: object) -> None:
    assert DIGESTS.owned({"metadata": metadata, "spec": {}}) == ""
    assert DIGESTS.owned({"spec": {}}) == ""


def test_managers_are_named_once_and_in_their_order() -> None:
    listed = [{"manager": "b"}, {"manager": "a"}, {"manager": "b"}, {"manager": ""}, {}, 5]
    assert managers({"managedFields": listed}) == ("b", "a")


def test_whether_a_single_field_is_ours_can_be_asked() -> None:
    trees = our_fields(deployment()["metadata"])
    assert owns(trees, "spec", "selector")
    assert owns(trees, "spec", "template", "spec", "containers")
    assert not owns(trees, "spec", "replicas")
    assert not owns(trees, "spec", "selector", "matchLabels")
    assert not owns([{"f:spec": None}], "spec", "replicas")
    assert not owns([], "spec")
    assert owns([{"f:data": {}}, {"f:spec": {"f:replicas": {}}}], "spec", "replicas")


def test_with_another_key_everything_is_unknown() -> None:
    other = Digests(KEY[::-1])
    assert other.owned(deployment()) != DIGESTS.owned(deployment())
    assert other.desired({"a": 1}) != DIGESTS.desired({"a": 1})


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        Digests(KEY[:-1])


def test_a_digest_is_short_and_the_same_after_a_restart() -> None:
    digest = Digests(bytes(KEY)).owned(deployment())
    assert digest == DIGESTS.owned(deployment())
    assert len(digest) == 22


def test_what_is_asked_for_is_not_compared_by_the_order_of_its_keys() -> None:
    assert DIGESTS.desired({"a": 1, "b": [1, 2]}) == DIGESTS.desired({"b": [1, 2], "a": 1})
    assert DIGESTS.desired({"b": [2, 1], "a": 1}) != DIGESTS.desired({"b": [1, 2], "a": 1})


def test_a_number_and_its_text_are_not_the_same_wish() -> None:
    assert len({DIGESTS.desired({"a": one}) for one in (1, "1", True, None, [1])}) == 5


def test_what_is_asked_for_and_what_is_ours_never_have_the_same_digest() -> None:
    """Whoever sees both digests learns nothing by comparing them."""
    tree: Object = {"f:a": {}}
    object_ = {"metadata": {"managedFields": [entry(tree)]}, "a": 1}
    assert DIGESTS.desired([projected(object_, tree)]) != DIGESTS.owned(object_)  # type: ignore[arg-type]
