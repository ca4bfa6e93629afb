"""What was refused is tried again: when, and what is said meanwhile."""

import pytest

from pequod.graph.advance import (
    REST,
    RETRY,
    Act,
    Decision,
    applied,
    decide,
    refused,
    stage,
    unusable,
)
from pequod.graph.record import Phase, Record
from situations import APPLY, CONFLICT, EPOCH, EXISTS, INVALID, UNREACHABLE, at, live, made, seen


def test_what_was_refused_is_tried_again_later_and_later() -> None:
    record, clock, delays = Record(), 0.0, []
    situation = seen(record, uid="")
    for _ in range(20):
        assert decide(situation, at(clock)) == APPLY
        refused(record, "d", INVALID, at(clock))
        assert record.phase == "Error"
        assert stage(situation) == "failed"
        assert decide(situation, at(clock)) == Decision(Act.REST, wake=record.retry_at)
        delays.append(record.retry_at - clock)
        clock = record.retry_at
    grown = [min(RETRY.first * 2**i, RETRY.limit) for i in range(20)]
    assert all(0.8 * most <= one <= most for one, most in zip(delays, grown, strict=True))
    assert delays[:9] == sorted(delays[:9])
    assert RETRY.limit == 300.0


def test_what_is_asked_for_now_has_not_been_refused_yet() -> None:
    record = Record()
    for _ in range(8):
        refused(record, "d", INVALID, at(0))
    assert decide(seen(record, uid="", digest="e"), at(1)) == APPLY
    refused(record, "e", INVALID, at(1))
    assert record.failures == 1
    assert record.retry_at <= 1.5


def test_what_another_graph_has_handed_over_is_taken_at_once() -> None:
    record = Record()
    refused(record, "d", EXISTS, at(0))
    assert decide(seen(record, None, uid=""), at(0)).act is Act.REST
    assert decide(seen(record, live(deleting=True), uid=""), at(0)).act is Act.REST
    assert decide(seen(record, live(), uid=""), at(0)) == APPLY


def test_an_object_that_is_ours_is_no_reason_to_be_impatient() -> None:
    """It was made, and the process ended before that was noted; now somebody has its field."""
    record = Record()
    refused(record, "d", CONFLICT, at(0))
    assert decide(seen(record, live(), uid=""), at(0)) == Decision(Act.REST, wake=record.retry_at)


def test_what_cannot_be_executed_is_an_error_unless_that_may_be_over_soon() -> None:
    record = made()
    unusable(record, UNREACHABLE, EPOCH, once=False)
    assert record.phase == "Ready"
    assert stage(seen(record)) == "failed"
    unusable(record, INVALID, EPOCH, once=False)
    assert record.status().phase == "Error"
    assert record.problem == INVALID


def test_what_was_made_once_and_ready_stays_so_when_it_cannot_be_looked_at() -> None:
    record = made()
    unusable(record, INVALID, EPOCH, once=True)
    assert stage(seen(record)) == "ready"
    record = made("Applied")
    unusable(record, INVALID, EPOCH, once=True)
    assert stage(seen(record)) == "failed"


def test_success_ends_the_retries() -> None:
    record = Record()
    refused(record, "d", INVALID, at(0))
    applied(record, "d", live(), at(1), before=None, uid="u")
    assert record.problem is None
    assert record.failures == 0
    assert record.phase == "Applied"
    assert decide(seen(record, live()), at(1)) == REST
    assert record.status().phase == "Ready"


@pytest.mark.parametrize(
    ("before", "after"), [("Ready", "Ready"), ("Applied", "Applied"), ("Pending", "Error")]
)
def test_an_api_server_in_trouble_says_nothing_about_what_was_applied(
    before: Phase, after: Phase
) -> None:
    record = made(before)
    refused(record, "d", UNREACHABLE, at(0))
    assert record.phase == after
    assert record.problem == UNREACHABLE
    assert stage(seen(record)) == "failed"


def test_a_drift_that_went_away_by_itself_is_no_problem_any_more() -> None:
    record = made()
    refused(record, "d", UNREACHABLE, at(0))
    situation = seen(record, live())
    assert decide(situation, at(record.retry_at)) == REST
    assert stage(situation) == "ready"
    assert record.failures == 0


def test_a_node_that_failed_and_has_to_wait_says_what_it_waits_for() -> None:
    record = Record()
    refused(record, "d", INVALID, at(0))
    situation = seen(record, uid="", blocked_by=("a",))
    decide(situation, at(record.retry_at))
    assert stage(situation) == "waiting"
    assert record.details == "waits for a"


def test_without_digests_everything_is_applied_once_more() -> None:
    """The key of the digests was lost, or the status."""
    assert decide(seen(Record(phase="Ready"), live()), at(0)) == APPLY
    assert decide(seen(made(), live(), digest="under another key"), at(0)) == APPLY
