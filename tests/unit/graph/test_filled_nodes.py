"""What is done about a node that takes values from others, by what is known of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy
from pequod.graph.advance import (
    REST,
    Act,
    Decision,
    Moment,
    Situation,
    decide,
    refused,
    stage,
    wants_write,
)
from pequod.graph.child import Child, ChildMetadata
from pequod.graph.kstatus import CURRENT
from pequod.graph.record import Filled, Phase, Problem, Record, Versions

EPOCH = datetime(2026, 11, 15, tzinfo=UTC)
WRONG = Problem(reasons.INVALID_EXPRESSION, "it is wrong")
AWAY = Problem(reasons.EVALUATION_FAILED, "nobody answers", transient=True)
LACKS = "waits for ${nodes.db.status.host} (at data.host): no such field yet"
FILL = Decision(Act.FILL)
APPLY = Decision(Act.APPLY)
LIVE = Child(metadata=ChildMetadata("it", "shop", "u", "7", "g"), owned="o", health=CURRENT)
VALUES = {"nodes.db.status.host": "here"}
KNOWN = Filled("t", {"db": "5"}, {"db": "5"}, digest="d", values=VALUES)
MISSING = Filled("t", {"db": "5"}, {"db": "5"}, lacks=LACKS)
BROKEN = Filled("t", {"db": "5"}, {"db": "5"}, problem=WRONG)


def at(clock: float) -> Moment:
    return Moment(clock, EPOCH + timedelta(seconds=clock))


def made(phase: Phase = "Ready", filled: Filled | None = KNOWN) -> Record:
    return Record(phase=phase, desired="d", owned="o", since=EPOCH, filled=filled)


def seen(record: Record, **rest: Any) -> Situation:  # noqa: ANN401 -- fields of a situation
    known = {"policy": ApplyPolicy(), "uid": "u", "digest": "d", "child": LIVE, **rest}
    return Situation(record=record, **known)


def new(record: Record, **rest: Any) -> Situation:  # noqa: ANN401 -- fields of a situation
    return seen(record, uid="", child=None, **rest)


def test_values_are_read_before_anything_is_applied() -> None:
    situation = new(Record(), unread=True, digest="")
    assert decide(situation, at(0)) == FILL
    assert wants_write(situation, at(0)), "it may come to be written in this pass"
    assert stage(situation) == "waiting"


def test_what_was_never_applied_waits_for_its_sources_before_it_reads_them() -> None:
    record = Record()
    assert decide(new(record, unread=True, digest="", blocked_by=("db",)), at(0)) == REST
    assert record.details == "waits for db"


def test_with_values_a_node_is_applied() -> None:
    assert decide(new(Record(filled=KNOWN)), at(0)) == APPLY


def test_a_changed_source_is_read_also_while_it_is_not_ready() -> None:
    """What was applied is not disturbed: whether there is anything to do shows when it is read."""
    record = made()
    assert decide(seen(record, unread=True, digest="?", blocked_by=("db",)), at(9)) == FILL
    assert record.phase == "Ready"


def test_values_that_have_not_changed_change_nothing() -> None:
    record = made()
    assert decide(seen(record), at(9)) == REST
    assert not wants_write(seen(record), at(9))
    assert (record.phase, record.since) == ("Ready", EPOCH)


def test_values_that_have_changed_are_applied_when_the_source_is_ready() -> None:
    assert decide(seen(made(), digest="e"), at(9)) == APPLY
    record = made()
    assert decide(seen(record, digest="e", blocked_by=("db",)), at(9)) == REST
    assert record.phase == "Pending"


@pytest.mark.parametrize("phase", ["Pending", "Applied", "Ready", "Error", "Adopted"])
def test_a_value_that_is_not_there_is_waited_for_without_a_wake(phase: Phase) -> None:
    record = made(phase, MISSING)
    situation = seen(record, digest="")
    assert decide(situation, at(9)) == REST
    assert (record.phase, record.details, record.problem) == ("Pending", LACKS, None)
    assert stage(situation) == "waiting"


@pytest.mark.parametrize("phase", ["Pending", "Applied", "Ready", "Error", "Adopted"])
def test_a_wrong_expression_is_the_nodes_problem_until_something_changes(phase: Phase) -> None:
    record = made(phase, BROKEN)
    situation = seen(record, digest="")
    assert decide(situation, at(9)) == REST
    assert decide(situation, at(99_999)) == REST
    assert (record.phase, record.problem) == ("Error", WRONG)
    assert stage(situation) == "failed"
    assert decide(seen(record, digest="", unread=True), at(99_999)) == FILL
    record.filled = KNOWN
    assert decide(seen(record), at(99_999)) == REST
    assert record.phase == "Ready"
    assert record.problem is None


def test_when_nobody_could_be_asked_it_is_tried_again_later_or_when_the_source_changes() -> None:
    record = made(filled=None)
    refused(record, "of 5", AWAY, at(0))
    assert decide(seen(record, unread=True, digest="of 5"), at(0.1)).act is Act.REST
    assert decide(seen(record, unread=True, digest="of 6"), at(0.1)) == FILL
    assert decide(seen(record, unread=True, digest="of 5"), at(record.retry_at)) == FILL
    assert record.phase == "Ready", "an evaluator in trouble says nothing about the object"


def test_what_was_made_once_needs_no_values_any_more() -> None:
    policy = ApplyPolicy(mode="Create")
    assert decide(seen(made(), policy=policy, unread=True, digest="?"), at(9)) == REST
    record = Record()
    assert decide(new(record, policy=policy, unread=True, digest=""), at(9)) == FILL


def test_what_is_only_looked_at_takes_no_values() -> None:
    record = Record()
    policy = ApplyPolicy(mode="Observe")
    assert decide(seen(record, policy=policy, unread=True), at(9)) == REST
    assert record.phase == "Ready"


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        ({"db": "5"}, True),
        ({"db": "6"}, True),
        ({"db": "7"}, False),
        ({"db": ""}, False),
        ({"db": None}, True),
        ({"db": "5", "other": "1"}, False),
    ],
)
def test_values_hold_for_the_versions_that_were_known_or_read(now: Versions, covered: bool) -> None:  # noqa: FBT001
    filled = Filled("t", {"db": "5"}, {"db": "6"}, digest="d")
    assert filled.covers("t", now) is covered
    assert not filled.covers("another template", now)


def test_large_values_are_not_kept() -> None:
    record = Record(filled=Filled("t", {}, digest="d", values=VALUES))
    record.forget_bulk()
    assert record.filled is not None
    assert record.filled.values == VALUES
    record.filled = Filled("t", {}, digest="d", values=VALUES, bulky=True)
    record.forget_bulk()
    assert (record.filled.values, record.filled.digest) == (None, "d")
