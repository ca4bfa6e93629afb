"""Whatever a foreign server returns, there is one answer, and it is a short sentence."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pequod.graph.kstatus import _TABLE, CURRENT, Health, State, health

KINDS = st.sampled_from([*sorted(_TABLE), ("example.org", "Widget")])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
COUNTS = st.integers(-1, 3) | JSON
WORDS = st.sampled_from(
    ["True", "False", "Unknown", "Running", "Pending", "Failed", "Bound", "OnDelete"]
)
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["Ready", "Stalled", "Reconciling", "Available", "Progressing", "Established"]
            )
            | JSON,
            "status": WORDS | JSON,
        },
        optional={"reason": JSON, "message": st.text(max_size=600) | JSON},
    )
    | JSON,
    max_size=4,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": COUNTS,
        "type": st.just("LoadBalancer") | JSON,
        "clusterIP": JSON,
        "paused": JSON,
        "progressDeadlineSeconds": COUNTS,
        "updateStrategy": st.fixed_dictionaries({"type": WORDS | JSON, "rollingUpdate": JSON}),
    },
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("observedGeneration", "replicas", "readyReplicas", "active"), COUNTS),
        **dict.fromkeys(("updatedReplicas", "availableReplicas", "numberReady"), COUNTS),
        "conditions": CONDITIONS | JSON,
        "phase": WORDS | JSON,
        "containerStatuses": st.lists(st.fixed_dictionaries({"name": JSON, "state": JSON}) | JSON),
        "desiredNumberScheduled": COUNTS,
        "loadBalancer": JSON,
        "startTime": JSON,
    },
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "generation": COUNTS,
        "deletionTimestamp": JSON,
        "finalizers": JSON,
        "annotations": JSON
        | st.fixed_dictionaries({"autoscaling.alpha.kubernetes.io/conditions": st.text() | JSON}),
    },
)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    group, kind = draw(KINDS)
    return {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": draw(METADATA | JSON),
        "spec": draw(SPECS | JSON),
        "status": draw(STATUSES | JSON),
    }


def assert_sensible(found: Health) -> None:
    assert msgspec.convert(found.state, State) == found.state
    assert len(found.message) <= 256
    assert len(found.message.splitlines()) <= 1
    assert found.message or found is CURRENT


@given(objects())
def test_every_object_has_a_health_and_always_the_same(object_: dict[str, Any]) -> None:
    found = health(object_)
    assert_sensible(found)
    assert health(object_) == found


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "status"]), JSON))
def test_even_what_is_no_object_at_all_has_a_health(object_: dict[str, Any]) -> None:
    assert_sensible(health(object_))


@given(JSON)
def test_whatever_stands_in_the_place_of_an_object_is_waited_for(value: Any) -> None:  # noqa: ANN401 -- any JSON
    assert health(value).state == "InProgress"


@given(st.text(), st.text(), st.text())
def test_a_message_is_on_one_line_whatever_a_controller_wrote(
    type_: str, reason: str, message: str
) -> None:
    condition = {"type": type_, "status": "True", "reason": reason, "message": message}
    stalled = {**condition, "type": "Stalled"}
    object_ = {"apiVersion": "v1", "kind": "X", "status": {"conditions": [condition, stalled]}}
    assert_sensible(health(object_))


@given(objects())
def test_an_object_is_not_changed_by_looking_at_it(object_: dict[str, Any]) -> None:
    before = repr(object_)
    health(object_)
    assert repr(object_) == before
