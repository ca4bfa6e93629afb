"""Nodes whose objects stay with others: what is said of them, and when others may go on."""

from typing import Any

import pytest

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy, ReadyWhen
from pequod.graph.advance import (
    REST,
    Act,
    Decision,
    Situation,
    applied,
    decide,
    refused,
    stage,
    wants_write,
)
from pequod.graph.child import Child
from pequod.graph.record import Phase, Problem, Record
from situations import CRASHING, EPOCH, OBSERVE, PROGRESSING, at, live


def mirrored(record: Record, child: Child | None, **more: Any) -> Situation:  # noqa: ANN401
    known = {"policy": OBSERVE, "uid": "", "digest": "d", "mirror": "no difference", **more}
    return Situation(record=record, child=child, **known)


@pytest.mark.parametrize("phase", ["Pending", "Applied", "Ready", "Error", "Adopted"])
def test_a_mirrored_object_that_is_current_is_ready_for_its_dependents(phase: Phase) -> None:
    record = Record(phase=phase, desired="d", owned="o", since=EPOCH)
    situation = mirrored(record, live(), mirror="differs: spec.a wanted 1, live 2")
    assert not wants_write(situation, at(1))
    assert decide(situation, at(1)) == REST
    assert record.phase == "Adopted"
    assert record.details == "differs: spec.a wanted 1, live 2"
    assert record.desired == record.owned == "", "nothing of it is ours"
    assert stage(situation) == "ready"


def test_a_mirrored_object_that_is_not_current_holds_its_dependents_back() -> None:
    record = Record()
    situation = mirrored(record, live(PROGRESSING))
    assert decide(situation, at(0)) == Decision(Act.REST, wake=600.0)
    assert (record.phase, record.details) == ("Adopted", "1 of 2; no difference")
    assert stage(situation) == "applied"


def test_a_mirrored_object_that_is_not_current_for_too_long_is_unhealthy() -> None:
    record = Record(ref_id="shop_it_apps_Deployment")
    situation = mirrored(record, live(PROGRESSING), predicates=(ReadyWhen(timeout="60s"),))
    decide(situation, at(0))
    assert decide(situation, at(61)) == REST
    assert stage(situation) == "unhealthy"
    assert record.phase == "Adopted"
    assert record.problem is not None
    assert record.problem.reason == reasons.NOT_HEALTHY
    assert record.problem.message == "Deployment/shop/it: not ready within 1 min: 1 of 2"
    decide(mirrored(record, live()), at(62))
    assert record.problem is None


def test_the_time_begins_when_it_stops_being_current() -> None:
    record = Record()
    decide(mirrored(record, live()), at(0))
    decide(mirrored(record, live()), at(5000))
    assert decide(mirrored(record, live(PROGRESSING)), at(5000)).wake == 5600.0
    assert decide(mirrored(record, live(PROGRESSING)), at(5100)).wake == 5600.0


def test_a_mirrored_object_that_failed_is_told_with_how_it_differs() -> None:
    record = Record()
    situation = mirrored(record, live(CRASHING))
    assert decide(situation, at(0)) == REST
    assert stage(situation) == "unhealthy"
    assert record.details == "it crashes; no difference"


def test_a_mirrored_object_that_does_not_exist_is_waited_for() -> None:
    record = Record(phase="Adopted", current=True)
    situation = mirrored(record, None)
    assert decide(situation, at(0)) == REST
    assert (record.phase, record.details) == ("Pending", "waits for somebody to create it")
    assert stage(situation) == "waiting"


def test_predicates_that_need_to_be_asked_are_asked() -> None:
    expression = ReadyWhen(type="CEL", expression="true")
    situation = mirrored(Record(), live(), predicates=(expression,))
    assert decide(situation, at(0)) == Decision(Act.ASK)


def test_an_api_server_in_trouble_says_nothing_about_a_mirrored_object() -> None:
    record = Record(phase="Adopted")
    refused(record, "d", Problem(reasons.UNREACHABLE, "no answer", transient=True), at(0))
    assert record.phase == "Adopted"
    assert stage(mirrored(record, live())) == "failed"


def test_what_was_mirrored_may_be_taken_over() -> None:
    record = Record(phase="Adopted", current=True)
    situation = Situation(record=record, policy=ApplyPolicy(), uid="", digest="d", child=None)
    assert decide(situation, at(0)).act is Act.APPLY
    applied(record, "d", live(), at(1), before=None, uid="")
    assert record.phase == "Applied"
