"""From what is known of a node to what is done about it."""

from dataclasses import replace

import pytest

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy, ReadyWhen
from pequod.graph.advance import (
    REST,
    Act,
    Decision,
    applied,
    awaits_end,
    decide,
    refused,
    stage,
    wants_write,
)
from pequod.graph.child import Child
from pequod.graph.readiness import READY, Answer, Readiness
from pequod.graph.record import RECREATIONS, RETAKE_WINDOW, RETAKES, Problem, Record
from situations import (
    APPLY,
    CRASHING,
    CREATE,
    EPOCH,
    FORCE,
    FORCED,
    FOUGHT,
    INVALID,
    OBSERVE,
    PROGRESSING,
    at,
    live,
    made,
    seen,
)


def test_a_node_without_dependencies_is_applied_at_once() -> None:
    record = Record()
    assert decide(seen(record, uid=""), at(0)) == APPLY
    assert wants_write(seen(record, uid=""), at(0))


def test_only_who_asks_for_it_takes_fields_by_force() -> None:
    assert decide(seen(Record(), uid="", policy=FORCE), at(0)) == FORCED
    assert decide(seen(made(), live(), digest="e"), at(0)) == APPLY
    assert decide(seen(made(), live(), digest="e", policy=FORCE), at(0)) == FORCED


def test_a_node_waits_for_its_dependencies() -> None:
    record = Record(problem=INVALID)
    situation = seen(record, uid="", blocked_by=("a", "b"))
    assert decide(situation, at(0)) == REST
    assert record.phase == "Pending"
    assert record.details == "waits for a, b"
    assert record.problem is None
    assert stage(situation) == "waiting"
    assert wants_write(situation, at(0)), "it may come to be written in this pass"


def test_of_many_dependencies_some_are_named() -> None:
    record = Record()
    decide(seen(record, uid="", blocked_by=tuple("abcdefg")), at(0))
    assert record.details == "waits for a, b, c, d, e and 2 more"


def test_a_changed_node_waits_for_its_dependencies_as_well() -> None:
    record = made()
    assert decide(seen(record, live(), digest="e", blocked_by=("a",)), at(0)) == REST
    assert record.phase == "Pending"


def test_what_was_made_does_not_wait_for_dependencies_that_became_unready() -> None:
    record = made()
    assert decide(seen(record, live(), blocked_by=("a",)), at(0)) == REST
    assert record.phase == "Ready"


def test_nothing_is_done_while_nothing_changes() -> None:
    record = made()
    situation = seen(record, live())
    assert decide(situation, at(5)) == REST
    assert not wants_write(situation, at(5))
    assert stage(situation) == "ready"
    assert record.since == EPOCH


@pytest.mark.parametrize("child", [None, live(uid="another")])
def test_what_is_gone_is_made_anew_and_not_ready_meanwhile(child: Child | None) -> None:
    record = made()
    assert decide(seen(record, child), at(5)) == FORCED
    assert record.phase == "Applied"
    assert stage(seen(record, child)) == "applied"


@pytest.mark.parametrize("owned", ["", "changed"])
def test_drift_is_taken_back(owned: str) -> None:
    """Whether or not anything is left that is ours."""
    assert decide(seen(made(), live(owned=owned)), at(5)) == FORCED


def test_a_fight_is_not_fought_for_long() -> None:
    record = made(retakes=[0.0, 1.0, 2.0])
    drifted = seen(record, live(owned="changed"))
    assert decide(drifted, at(5)) == APPLY
    refused(record, "d", FOUGHT, at(5))
    assert record.phase == "Error"
    assert stage(drifted) == "failed"
    assert record.retry_at == RETAKE_WINDOW
    assert decide(drifted, at(RETAKE_WINDOW - 1)) == Decision(Act.REST, wake=RETAKE_WINDOW)
    assert decide(drifted, at(RETAKE_WINDOW)) == FORCED


def test_who_asks_for_force_is_told_in_the_end_who_fights() -> None:
    """By force nobody is told whose fields they are."""
    drifted = live(owned="changed")
    assert decide(seen(made(retakes=[0.0, 1.0]), drifted, policy=FORCE), at(5)) == FORCED
    assert decide(seen(made(retakes=[0.0, 1.0, 2.0]), drifted, policy=FORCE), at(5)) == APPLY


def test_what_is_gone_is_made_anew_after_what_it_depends_on() -> None:
    record = made()
    assert decide(seen(record, None, blocked_by=("space",)), at(5)) == REST
    assert (record.phase, record.details) == ("Pending", "waits for space")
    assert decide(seen(record, None), at(6)) == FORCED


def test_what_was_edited_is_mended_whatever_it_depends_on() -> None:
    drifted = seen(made(), live(owned="changed"), blocked_by=("space",))
    assert decide(drifted, at(5)) == FORCED


def test_what_is_made_once_stays_made_under_another_id() -> None:
    record = Record()
    assert decide(seen(record, live(), policy=CREATE), at(5)) == REST
    assert (record.phase, record.desired) == ("Ready", "d")
    assert decide(seen(Record(), None, policy=CREATE), at(5)) == APPLY


def test_what_is_being_deleted_is_awaited_without_counting_failures() -> None:
    record = made("Error", problem=INVALID, failures=9, retry_at=300.0, failed_digest="e")
    awaits_end(record, at(5))
    assert (record.phase, record.problem, record.retry_at) == ("Pending", None, 0.0)
    assert decide(seen(record, live(deleting=True), uid="", digest="e"), at(6)) == REST
    assert decide(seen(record, None, uid="", digest="e"), at(7)) == APPLY


def test_an_apply_that_changed_nothing_is_no_repair() -> None:
    """Others may fill a map that we hold as empty: that is their right."""
    record = made()
    applied(record, "d", live(owned="filled"), at(6), before=live(owned="filled"), uid="u")
    assert record.retakes == []
    assert record.owned == "filled"


def test_what_is_applied_once_more_was_undone() -> None:
    record = Record()
    applied(record, "d", live(), at(5), before=None, uid="u")
    assert record.retakes == []
    applied(record, "d", live(), at(6), before=None, uid="u")
    assert record.retakes == [6]
    applied(record, "e", live(), at(7), before=None, uid="u")
    assert record.retakes == [6]


@pytest.mark.parametrize(
    ("child", "most"), [(live(owned="changed"), RETAKES + 1), (None, RECREATIONS)]
)
@pytest.mark.parametrize("policy", [ApplyPolicy(), FORCE])
def test_what_is_undone_again_and_again_is_given_up_whoever_does_it(
    child: Child | None, most: int, policy: ApplyPolicy
) -> None:
    record = made(retakes=[float(i) for i in range(most - 1)], ref_id="shop_it__ConfigMap")
    situation = seen(record, child, policy=policy)
    assert decide(situation, at(50)).act is Act.APPLY
    applied(record, "d", live(), at(50), before=None, uid="u")
    assert decide(situation, at(51)) == Decision(Act.REST, wake=RETAKE_WINDOW)
    assert record.problem is not None
    assert record.problem.reason == reasons.OWNERSHIP_CONFLICT
    assert record.problem.message.startswith("ConfigMap/shop/it: somebody keeps undoing")
    assert stage(situation) == "failed"
    assert decide(situation, at(RETAKE_WINDOW)).act is Act.APPLY


def test_what_is_no_longer_undone_is_no_fight() -> None:
    record = made(retakes=[1.0] * RECREATIONS)
    for child in (live(), live(deleting=True)):
        decide(seen(record, child), at(5))
        assert record.problem is None


def test_what_was_ready_stays_ready_when_its_drift_is_taken_back() -> None:
    record = made(waits_since=1.0)
    applied(record, "d", live(owned="p"), at(5), before=None, uid="u")
    assert record.phase == "Ready"
    assert record.owned == "p"
    assert record.waits_since == 1.0


def test_what_only_lost_its_label_was_ready_all_the_time() -> None:
    record = made()
    assert decide(seen(record, None), at(5)) == FORCED
    assert record.phase == "Applied"
    applied(record, "d", live(), at(6), before=None, uid="u")
    decide(seen(record, live()), at(6))
    assert (record.phase, record.since) == ("Ready", EPOCH)


def test_what_was_made_anew_is_ready_since_then() -> None:
    record = made()
    decide(seen(record, None), at(5))
    applied(record, "d", live(uid="v"), at(6), before=None, uid="u")
    decide(seen(record, live(uid="v"), uid="v"), at(7))
    assert (record.phase, record.since) == ("Ready", at(7).wall)


def test_a_lapse_that_was_told_counts() -> None:
    record = made()
    decide(seen(record, None), at(5))
    record.forget_lapse()
    applied(record, "d", live(), at(6), before=None, uid="u")
    decide(seen(record, live()), at(7))
    assert (record.phase, record.since) == ("Ready", at(7).wall)


def test_a_changed_object_has_to_become_ready_again() -> None:
    record = made()
    applied(record, "e", live(), at(5), before=None, uid="u")
    assert record.phase == "Applied"
    assert record.desired == "e"
    assert record.waits_since == 5


@pytest.mark.parametrize("digest", ["d", "e"])
def test_what_somebody_deletes_is_waited_for(digest: str) -> None:
    record = made(problem=INVALID)
    situation = seen(record, live(deleting=True), digest=digest)
    assert decide(situation, at(5)) == REST
    assert record.phase != "Ready"
    assert record.problem is None
    assert "somebody deletes" in record.details


def test_an_object_is_looked_at_until_it_is_ready() -> None:
    record = made("Applied", waits_since=100.0)
    situation = seen(record, live(PROGRESSING))
    assert decide(situation, at(130)) == Decision(Act.REST, wake=700.0)
    assert record.details == "1 of 2"
    assert stage(situation) == "applied"
    assert decide(replace(situation, child=live()), at(140)) == REST
    assert record.phase == "Ready"
    assert record.details == ""
    assert stage(situation) == "ready"


def test_the_next_look_is_never_in_the_past() -> None:
    predicates = (ReadyWhen(type="Exists", timeout="1m"), ReadyWhen(timeout="10m"))
    record = made("Applied", waits_since=100.0)
    found = decide(seen(record, live(PROGRESSING), predicates=predicates), at(300))
    assert found.wake == 700.0


def test_what_was_ready_may_take_its_time_anew() -> None:
    record = made(waits_since=0.0)
    assert decide(seen(record, live(PROGRESSING)), at(5000)).wake == 5600.0
    assert record.phase == "Applied"


def test_an_object_that_is_not_ready_in_time_is_an_error_until_it_is() -> None:
    record = made("Applied", waits_since=0.0)
    situation = seen(record, live(PROGRESSING))
    assert decide(situation, at(600)).act is not Act.APPLY
    assert record.phase == "Error"
    assert record.problem == Problem(
        reasons.NOT_HEALTHY, "not ready within 10 min: 1 of 2", applying=False
    )
    assert stage(situation) == "unhealthy"
    assert not wants_write(situation, at(600))
    assert decide(replace(situation, child=live()), at(700)) == REST
    assert stage(situation) == "ready"


def test_the_pods_of_what_failed_are_asked_once_what_they_have_to_say() -> None:
    record = made(ref_id="shop_it_apps_Deployment")
    situation = seen(record, live(CRASHING))
    assert decide(situation, at(1)) == Decision(Act.EXPLAIN)
    record.explanation = "container app exits with code 1"
    assert decide(situation, at(1)) == REST
    assert record.problem is not None
    assert record.problem.message == (
        "Deployment/shop/it: it crashes; container app exits with code 1"
    )
    applied(record, "e", live(), at(2), before=None, uid="u")
    assert record.explanation is None


def test_pods_may_have_nothing_to_say() -> None:
    record = made(explanation="")
    assert decide(seen(record, live(CRASHING)), at(1)) == REST
    assert record.problem is not None
    assert record.problem.message == "it crashes"


def test_an_object_that_failed_may_recover() -> None:
    record = made()
    situation = seen(record, live(CRASHING))
    decide(situation, at(1))
    assert record.phase == "Error"
    assert stage(situation) == "unhealthy"
    decide(replace(situation, child=live(PROGRESSING)), at(2))
    assert stage(situation) == "applied"
    assert record.status().phase == "Applied"


def test_expressions_are_evaluated_first_and_once_for_a_version() -> None:
    predicates = (ReadyWhen(type="CEL", expression="x"),)
    record = made("Applied")
    situation = seen(record, live(), predicates=predicates)
    assert decide(situation, at(1)) == Decision(Act.ASK)
    record.answers["x"] = Answer("7", Readiness(ready=False, detail="x is false"))
    assert decide(situation, at(1)).act is Act.REST
    assert record.details == "x is false"
    later = replace(situation, child=live(version="8"))
    assert decide(later, at(2)) == Decision(Act.ASK)
    record.answers["x"] = Answer("8", READY)
    assert decide(later, at(2)) == REST
    assert record.phase == "Ready"


def test_what_is_made_once_is_left_alone() -> None:
    record = made()
    for child in (live(), live(owned="changed"), live(uid="another")):
        assert decide(seen(record, child, digest="e", policy=CREATE), at(1)) == REST
        assert record.phase == "Ready"


def test_what_is_made_once_is_made() -> None:
    assert decide(seen(Record(), uid="", policy=CREATE), at(1)) == APPLY


@pytest.mark.parametrize("ways", [(None,), (live(deleting=True), None)])
def test_what_was_made_once_and_ready_may_go(ways: tuple[Child | None, ...]) -> None:
    """A Job that is cleaned up after it ran is gone at once, or after its pods."""
    record = made()
    for child in ways:
        situation = seen(record, child, policy=CREATE)
        assert decide(situation, at(1)) == REST
        assert stage(situation) == "ready"
    assert record.details == "was made once; it is gone by now, or has lost its label"


def test_what_is_gone_before_it_was_ready_is_not_made_twice() -> None:
    record = made("Applied")
    situation = seen(record, None, policy=CREATE)
    assert decide(situation, at(1)) == REST
    assert record.phase == "Error"
    assert record.problem is not None
    assert record.problem.reason == reasons.NOT_FOUND
    assert "made only once" in record.problem.message
    assert stage(situation) == "unhealthy"


def test_what_others_provide_is_waited_for_and_never_written() -> None:
    record = Record()
    situation = seen(record, None, uid="", policy=OBSERVE)
    assert decide(situation, at(1)) == REST
    assert record.details == "waits for somebody to create it"
    assert stage(situation) == "waiting"
    assert not wants_write(situation, at(1))
    there = replace(situation, child=live(PROGRESSING, owned=""))
    decide(there, at(2))
    assert stage(there) == "applied"
    decide(replace(there, child=live(owned="")), at(3))
    assert stage(there) == "ready"
    decide(situation, at(4))
    assert stage(situation) == "waiting"
    assert record.phase == "Pending"


def test_what_others_provide_may_have_failed() -> None:
    record = Record()
    situation = seen(record, live(CRASHING, owned=""), uid="", policy=OBSERVE)
    assert decide(situation, at(1)).act is not Act.APPLY
    assert stage(situation) == "unhealthy"
