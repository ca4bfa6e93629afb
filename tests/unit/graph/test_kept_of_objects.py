"""What is kept of a live object, and when it is worth another look."""

from typing import Any

import msgspec
import pytest

from pequod.graph.child import Child, ChildCondition, child, reader
from pequod.graph.digests import Digests
from pequod.graph.kstatus import CURRENT

Object = dict[str, Any]
DIGESTS = Digests(bytes(32))


def live(status: object = None, **metadata: object) -> Object:
    known = {"name": "it", "namespace": "shop", "uid": "u", "resourceVersion": "7", **metadata}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": known, "status": status}


def kept(object_: Object) -> Child:
    made = child(object_, DIGESTS)
    assert reader(DIGESTS)(msgspec.json.encode(object_)) == made
    return made


def owned(fields: Object) -> list[Object]:
    return [{"manager": "pequod-operator", "operation": "Apply", "fieldsV1": fields}]


def annotated(**annotations: object) -> Child:
    return kept(
        live(annotations={f"pequod.io/{k.replace('_', '-')}": v for k, v in annotations.items()})
    )


def test_the_least_is_kept() -> None:
    made = kept(live(labels={"pequod.io/graph": "g", "a": "b"}))
    assert made.metadata.name == "it"
    assert made.metadata.namespace == "shop"
    assert made.metadata.uid == "u"
    assert made.metadata.resource_version == "7"
    assert made.metadata.graph == "g"
    assert made.owned == ""
    assert made.health == CURRENT
    assert made.conditions == ()
    assert not made.deleting
    assert made.finalizers == ()
    assert not made.protected
    assert made.grace == 0.0
    assert not made.owns_replicas
    assert made.observed


def test_a_deletion_and_what_holds_it_are_kept() -> None:
    made = kept(live(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b", "orphan"]))
    assert made.deleting
    assert made.finalizers == ("a/b", "orphan")
    assert made.health.state == "Terminating"


def test_whether_the_number_of_replicas_is_ours_is_kept() -> None:
    made = kept(live(managedFields=owned({"f:spec": {"f:replicas": {}}})))
    assert made.owns_replicas
    assert made.owned


@pytest.mark.parametrize(
    ("value", "protected"), [("disabled", True), ("enabled", False), ("", False), (True, False)]
)
def test_an_object_may_ask_not_to_be_pruned(value: object, protected: bool) -> None:  # noqa: FBT001 -- a table
    assert annotated(prune=value).protected is protected


@pytest.mark.parametrize(
    ("value", "grace"),
    [
        ("30s", 30.0),
        ("1h30m", 5400.0),
        ("0s", 0.0),
        ("", 0.0),
        (None, 0.0),
        ("48h", 86400.0),
        ("soon", 86400.0),
        ("-5s", 86400.0),
        (30, 86400.0),
        (["30s"], 86400.0),
    ],
)
def test_an_object_may_ask_for_a_grace_and_what_cannot_be_read_is_the_longest(
    value: object, grace: float
) -> None:
    assert annotated(prune_grace_period=value).grace == grace


@pytest.mark.parametrize(
    ("status", "observed"),
    [
        ({"observedGeneration": 3}, True),
        ({"observedGeneration": 4}, True),
        ({"observedGeneration": 2}, False),
        ({"observedGeneration": "2"}, True),
        ({}, True),
        (None, True),
        ([], True),
    ],
)
def test_whether_the_newest_generation_was_seen_is_kept(status: object, observed: bool) -> None:  # noqa: FBT001 -- a table
    assert kept(live(status, generation=3)).observed is observed


def test_conditions_are_kept_as_sentences() -> None:
    conditions = [
        {"type": "Ready", "status": "False", "reason": "NoDisk", "message": "buy\none"},
        {"type": "Old", "status": "True", "observedGeneration": 2},
        {"type": "New", "status": "True", "observedGeneration": 3, "message": "x" * 500},
        {"type": "Bare"},
        "no condition",
    ]
    made = kept(live({"conditions": conditions}, generation=3)).conditions
    assert made[:2] == (
        ChildCondition("Ready", "False", "NoDisk: buy\\none"),
        ChildCondition("Old", "True", current=False),
    )
    assert made[2].current
    assert len(made[2].said) == 201
    assert made[3] == ChildCondition("Bare", "None")
    assert len(made) == 4


def test_only_so_many_conditions_are_kept() -> None:
    many = [{"type": f"T{i}", "status": "True"} for i in range(100)]
    assert len(kept(live({"conditions": many})).conditions) == 64


@pytest.mark.parametrize(
    "object_",
    [{}, {"metadata": None}, {"metadata": []}, {"metadata": {}}, {"metadata": {"name": 5}}],
)
def test_what_has_no_name_is_no_object(object_: Object) -> None:
    with pytest.raises(msgspec.ValidationError, match="no metadata with a name"):
        child(object_, DIGESTS)


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"{", b'"\xff"'])
def test_bytes_that_are_no_object_are_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        reader(DIGESTS)(raw)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"pequod.io/graph": 5}},
        {"labels": {"pequod.io/graph": ["a"]}},
        {"labels": "x", "annotations": ["y"]},
        {"finalizers": 5},
        {"finalizers": {"a": 1}},
        {"finalizers": [5, None, {}]},
        {"generation": []},
        {"generation": {}},
        {"managedFields": {"manager": "pequod-operator"}},
        {"namespace": 5, "uid": [], "resourceVersion": {}},
        {"deletionTimestamp": [1]},
    ],
)
def test_metadata_of_another_shape_is_no_reason_to_fail(metadata: Object) -> None:
    status: Object = {"conditions": [{"type": [], "status": {}, "observedGeneration": []}]}
    assert kept(live(status, **metadata)).metadata.name == "it"


def test_another_resource_version_alone_is_nothing_to_decide() -> None:
    before, after = kept(live(generation=1)), kept(live(generation=1, resourceVersion="8"))
    assert before != after
    assert not after.differs(before)
    assert not before.differs(after)


@pytest.mark.parametrize(
    "after",
    [
        live(uid="v"),
        live(labels={"pequod.io/graph": "g"}),
        live(managedFields=owned({"f:spec": {}})),
        live({"conditions": [{"type": "Ready", "status": "False"}]}),
        live({"conditions": [{"type": "Other", "status": "True"}]}),
        live({"observedGeneration": 1}, generation=2),
        live(deletionTimestamp="2026-01-01T00:00:00Z"),
        live(finalizers=["a/b"]),
        live(annotations={"pequod.io/prune": "disabled"}),
        live(annotations={"pequod.io/prune-grace-period": "30s"}),
    ],
)
def test_whatever_may_change_a_decision_is_worth_a_look(after: Object) -> None:
    before = kept(live())
    assert kept(after).differs(before)
    assert before.differs(kept(after))
    assert not kept(after).differs(kept(after))


def test_what_is_kept_is_small() -> None:
    made = kept(live({"conditions": [{"type": "Ready", "status": "True", "message": "x" * 9000}]}))
    assert len(msgspec.json.encode(made)) < 1024


IDLE: Object = {"observedGeneration": 3}


@pytest.mark.parametrize(
    ("replicas", "status", "has_pods"),
    [
        (0, IDLE, False),
        (0, IDLE | {"replicas": 0}, False),
        (1, IDLE, True),
        (None, IDLE, True),
        (0, {"observedGeneration": 2}, True),
        (0, IDLE | {"replicas": 1}, True),
        (0, IDLE | {"terminatingReplicas": 1}, True),
        (0, None, True),
    ],
)
def test_only_a_workload_that_was_scaled_to_nothing_has_no_pods(
    replicas: int | None, status: object, *, has_pods: bool
) -> None:
    workload = live(status, generation=3) | {"spec": {"replicas": replicas}}
    assert kept(workload).has_pods is has_pods
