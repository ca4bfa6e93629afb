"""What is remembered of a node, in a status and out of it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from pequod.api import reasons
from pequod.api.graph import NodeDigests, NodeStatus
from pequod.graph.record import (
    LEGAL,
    LONGEST_TEXT,
    RETAKE_WINDOW,
    RETAKES,
    IllegalTransitionError,
    Phase,
    Problem,
    Record,
    restored,
)

NOW = datetime(2026, 11, 15, 10, 0, 0, 123456, tzinfo=UTC)
EARLIER = datetime(2026, 11, 15, 9, 0, 0, tzinfo=UTC)


def again(status: NodeStatus) -> Record:
    return restored(status, ref_id="shop_it__ConfigMap", clock=1000.0, now=NOW)


@pytest.mark.parametrize("before", LEGAL)
@pytest.mark.parametrize("after", LEGAL)
def test_only_legal_ways_lead_to_a_phase(before: Phase, after: Phase) -> None:
    record = Record(phase=before, since=EARLIER)
    if after != before and after not in LEGAL[before]:
        with pytest.raises(IllegalTransitionError, match=f"from {before} to {after}"):
            record.moves(after, NOW)
        assert record.phase == before
        return
    record.moves(after, NOW)
    assert record.phase == after
    assert record.since == (EARLIER if after == before else NOW.replace(microsecond=0))


def test_ready_is_only_what_was_applied() -> None:
    assert [phase for phase in LEGAL if "Ready" in LEGAL[phase]] == ["Applied"]


def test_a_status_says_what_matters_and_nothing_else() -> None:
    assert msgspec.to_builtins(Record(since=EARLIER).status()) == {
        "lastTransitionTime": "2026-11-15T09:00:00Z"
    }
    record = Record(
        phase="Error",
        desired="d",
        owned="o",
        problem=Problem(reasons.INVALID, "ConfigMap/a: it\nis wrong"),
        since=EARLIER,
        previous_managers=("kubectl",),
        failures=3,
        retakes=[1.0],
    )
    assert msgspec.to_builtins(record.status()) == {
        "phase": "Error",
        "lastError": "ConfigMap/a: it\\nis wrong",
        "digests": {"desired": "d", "owned": "o"},
        "previousManagers": ("kubectl",),
        "lastTransitionTime": "2026-11-15T09:00:00Z",
    }


def test_what_is_said_is_cut() -> None:
    problem = Problem(reasons.INVALID, "x" * 9000)
    status = Record(problem=problem, details="y" * 9000, previous_managers=("m",) * 99).status()
    assert len(status.last_error or "") == LONGEST_TEXT + 1
    assert len(status.ready_details or "") == LONGEST_TEXT + 1
    assert len(status.previous_managers) == 16


def test_a_record_comes_back_from_its_status() -> None:
    record = Record(
        ref_id="shop_it__ConfigMap",
        phase="Applied",
        desired="d",
        owned="o",
        details="waits",
        since=EARLIER,
        previous_managers=("kubectl",),
    )
    found = again(record.status())
    assert found.status() == record.status()
    assert found.ref_id == record.ref_id


def test_a_status_that_says_nothing_is_a_new_record() -> None:
    found = again(NodeStatus())
    assert found.phase == "Pending"
    assert found.desired == found.owned == ""
    assert found.since == NOW


@pytest.mark.parametrize("digests", [NodeDigests(desired="d"), NodeDigests(owned="o")])
def test_digests_come_back_one_by_one(digests: NodeDigests) -> None:
    assert again(NodeStatus(digests=digests)).status().digests == digests


def test_an_error_is_found_out_anew_after_a_restart() -> None:
    found = again(NodeStatus(phase="Error", last_error="it is wrong"))
    assert found.problem is None
    assert not found.apply_failed
    assert found.retry_at == 0.0


def test_the_time_that_a_node_has_waited_survives_a_restart() -> None:
    found = again(NodeStatus(phase="Applied", last_transition_time=NOW - timedelta(seconds=90)))
    assert found.waits_since == pytest.approx(910.0)


def test_what_is_mirrored_waits_anew_after_a_restart() -> None:
    found = again(NodeStatus(phase="Adopted", last_transition_time=NOW - timedelta(days=9)))
    assert found.waits_since == 1000.0


def test_whoever_managed_an_object_is_remembered_once() -> None:
    record = Record()
    assert record.knows_managers(["helm", "kubectl"])
    assert not record.knows_managers(["kubectl"])
    assert not record.knows_managers(["pequod-operator"]), "by then it is ours already"
    assert record.knows_managers(["flux"])
    assert record.previous_managers == ("helm", "kubectl", "flux")
    assert record.knows_managers([f"{number}-{'x' * 200}" for number in range(99)])
    assert len(record.previous_managers) == 16
    assert max(len(name) for name in record.previous_managers) == 128
    assert not record.knows_managers(["one more"])


def test_a_clock_that_went_back_makes_nobody_wait_longer() -> None:
    found = again(NodeStatus(phase="Applied", last_transition_time=NOW + timedelta(hours=1)))
    assert found.waits_since == 1000.0


def test_retakes_are_counted_within_a_window() -> None:
    record = Record()
    assert record.retakes_left(0.0) == RETAKES
    record.retakes = [0.0, 100.0, 200.0]
    assert record.retakes_left(200.0) == 0
    assert record.retakes_left(RETAKE_WINDOW - 0.1) == 0
    assert record.retakes_left(RETAKE_WINDOW) == 1
    assert record.retakes_left(RETAKE_WINDOW + 200.0) == RETAKES
    assert record.retakes == []


def test_a_failed_apply_is_told_apart_from_a_failed_object() -> None:
    assert Record(problem=Problem(reasons.INVALID, "x")).apply_failed
    assert not Record(problem=Problem(reasons.NOT_HEALTHY, "x", applying=False)).apply_failed
    assert not Record().apply_failed
