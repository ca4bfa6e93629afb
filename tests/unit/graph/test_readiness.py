"""When the object of a node is ready, and what is said as long as it is not."""

from typing import Any

import pytest

from pequod.api.graph import ReadyWhen
from pequod.graph.child import Child, ChildCondition, ChildMetadata
from pequod.graph.kstatus import CURRENT, Health, State
from pequod.graph.readiness import (
    READY,
    Answer,
    Answers,
    Readiness,
    deadline,
    judged,
    to_be_asked,
)

EXPRESSION = "self.status.ready"
CEL = ReadyWhen(type="CEL", expression=EXPRESSION)
AVAILABLE = ReadyWhen(type="DeploymentAvailable")
COMPLETE = ReadyWhen(type="JobComplete")
SYNCED = ReadyWhen(type="ConditionMatch", condition_type="Synced")


def live(
    *conditions: ChildCondition,
    state: State = "Current",
    said: str = "",
    **rest: Any,  # noqa: ANN401 -- fields of a child
) -> Child:
    return Child(
        metadata=ChildMetadata("it", "shop", "u", "7", "g"),
        owned="o",
        health=Health(state, said) if state != "Current" else CURRENT,
        conditions=conditions,
        **rest,
    )


def verdict(
    child: Child, *predicates: ReadyWhen, answers: Answers | None = None, waited: float = 1.0
) -> Readiness:
    return judged(predicates, child, answers or {}, waited=waited)


def lack(child: Child, *predicates: ReadyWhen, **rest: Any) -> str:  # noqa: ANN401 -- as above
    """What is missing, where waiting may help."""
    found = verdict(child, *predicates, **rest)
    assert not found.ready
    assert not found.failed
    return found.detail


def failure(child: Child, *predicates: ReadyWhen, **rest: Any) -> str:  # noqa: ANN401 -- as above
    """What is missing, where waiting does not help."""
    found = verdict(child, *predicates, **rest)
    assert not found.ready
    assert found.failed
    return found.detail


def said(type_: str, status: str, text: str = "", *, current: bool = True) -> ChildCondition:
    return ChildCondition(type_, status, text, current)


def test_without_predicates_an_object_is_ready_when_it_is_current() -> None:
    assert verdict(live()) is READY
    assert lack(live(state="InProgress", said="1 of 2 replicas are ready")) == (
        "1 of 2 replicas are ready"
    )
    assert lack(live(state="InProgress")) == "it is InProgress"


def test_an_object_that_failed_is_not_waited_for() -> None:
    assert failure(live(state="Failed", said="it crashes")) == "it crashes"


def test_some_objects_only_have_to_exist() -> None:
    assert verdict(live(state="Failed"), ReadyWhen(type="Exists")) is READY


@pytest.mark.parametrize(
    "predicate", [ReadyWhen(), ReadyWhen(type="Exists"), CEL, AVAILABLE, COMPLETE, SYNCED]
)
def test_an_object_that_is_being_deleted_is_never_ready(predicate: ReadyWhen) -> None:
    going = live(said("Synced", "True"), said("Complete", "True"), deleting=True)
    answers = {EXPRESSION: Answer("7", READY)}
    assert lack(going, predicate, answers=answers).startswith("somebody deletes it")


def test_a_condition_must_have_the_status_that_is_asked_for() -> None:
    assert verdict(live(said("Synced", "True")), SYNCED) is READY
    assert lack(live(said("Synced", "False")), SYNCED) == (
        "condition Synced is False instead of True"
    )
    assert lack(live(said("Synced", "Unknown", "Slow: soon")), SYNCED) == (
        "condition Synced is Unknown instead of True: Slow: soon"
    )
    assert lack(live(said("Other", "True")), SYNCED) == "it has no condition Synced yet"


def test_a_condition_may_be_asked_to_be_false() -> None:
    broken = ReadyWhen(type="ConditionMatch", condition_type="Broken", condition_status="False")
    assert verdict(live(said("Broken", "False")), broken) is READY
    assert lack(live(said("Broken", "True")), broken) == "condition Broken is True instead of False"


def test_a_condition_about_an_earlier_generation_does_not_count() -> None:
    old = "condition Synced speaks of an earlier generation"
    assert lack(live(said("Synced", "True", current=False)), SYNCED) == old
    assert lack(live(said("Synced", "True"), observed=False), SYNCED) == old


def test_a_deployment_is_available_when_its_controller_says_so_of_the_newest_generation() -> None:
    assert verdict(live(said("Available", "True"), state="InProgress"), AVAILABLE) is READY
    assert "newest generation" in lack(live(said("Available", "True"), observed=False), AVAILABLE)
    assert lack(live(said("Available", "False", "Min: too few")), AVAILABLE) == (
        "condition Available is False: Min: too few"
    )
    assert lack(live(said("Available", "False")), AVAILABLE) == "condition Available is False"


def test_a_deployment_without_the_condition_says_what_else_is_known() -> None:
    assert lack(live(state="InProgress", said="0 of 2"), AVAILABLE) == "0 of 2"
    assert lack(live(), AVAILABLE) == "it is not available yet"


def test_a_job_is_complete_or_failed_or_waited_for() -> None:
    assert verdict(live(said("Complete", "True")), COMPLETE) is READY
    assert failure(live(said("Failed", "True", "Limit: 3 times")), COMPLETE) == (
        "the Job failed: Limit: 3 times"
    )
    assert lack(live(said("Failed", "False"), said("Complete", "False")), COMPLETE) == (
        "the Job is not complete yet"
    )
    assert lack(live(state="InProgress", said="not started"), COMPLETE) == "not started"


def test_an_expression_is_as_good_as_its_answer() -> None:
    assert verdict(live(), CEL, answers={EXPRESSION: Answer("7", READY)}) is READY
    no = Readiness(ready=False, detail="self.status.ready is false")
    assert lack(live(), CEL, answers={EXPRESSION: Answer("7", no)}) == "self.status.ready is false"
    broken = Readiness(ready=False, failed=True, detail="yields neither true nor false")
    assert "neither" in failure(live(), CEL, answers={EXPRESSION: Answer("7", broken)})
    assert lack(live(), CEL) == "its expression was not evaluated yet"


def test_asking_over_http_is_not_supported_yet_and_says_so() -> None:
    http = ReadyWhen(type="HTTP", url="http://it/")
    assert failure(live(), http) == "readyWhen HTTP is not supported yet"


def test_all_predicates_must_hold_and_the_first_that_does_not_is_told() -> None:
    child = live(said("Synced", "True"))
    assert verdict(child, SYNCED, ReadyWhen()) is READY
    assert lack(child, SYNCED, AVAILABLE, COMPLETE) == "it is not available yet"


def test_each_predicate_has_its_own_time_whatever_their_order() -> None:
    patient, quick = ReadyWhen(timeout="1h"), ReadyWhen(type="JobComplete", timeout="2s")
    child = live(state="InProgress", said="1 of 2")
    for predicates in ((patient, quick), (quick, patient)):
        assert "not ready within 2 s" in failure(child, *predicates, waited=3.0)
        assert lack(child, *predicates, waited=1.0)


def test_a_failure_is_told_before_what_is_only_missing() -> None:
    failed = live(said("Failed", "True", "BackoffLimitExceeded"), state="InProgress", said="1 of 2")
    assert failure(failed, ReadyWhen(timeout="1h"), COMPLETE).startswith("the Job failed")


def test_what_takes_too_long_has_failed() -> None:
    slow = ReadyWhen(timeout="90s")
    child = live(state="InProgress", said="1 of 2")
    assert lack(child, slow, waited=89.9) == "1 of 2"
    assert failure(child, slow, waited=90.0) == "not ready within 1 min 30 s: 1 of 2"


def test_without_a_word_about_it_ten_minutes_are_enough() -> None:
    child = live(state="InProgress", said="1 of 2")
    assert lack(child, waited=599.0) == "1 of 2"
    assert failure(child, waited=600.0) == "not ready within 10 min: 1 of 2"


def test_what_is_ready_late_is_ready() -> None:
    assert verdict(live(), waited=1e9) is READY


def test_what_has_failed_is_told_as_it_is_and_not_as_a_timeout() -> None:
    assert failure(live(state="Failed", said="it crashes"), waited=1e9) == "it crashes"


def test_the_time_of_a_predicate_that_holds_does_not_run_out() -> None:
    quick, slow = ReadyWhen(type="Exists", timeout="1s"), ReadyWhen(timeout="10m")
    child = live(state="InProgress", said="1 of 2")
    assert lack(child, quick, slow, waited=60.0) == "1 of 2"


def test_the_next_deadline_is_never_one_that_has_passed() -> None:
    """Otherwise a graph would be looked at again at once, and again, and again."""
    predicates = (ReadyWhen(timeout="1m"), ReadyWhen(timeout="1s"), ReadyWhen(timeout="10m"))
    assert deadline(predicates, 0.0) == 1.0
    assert deadline(predicates, 1.0) == 60.0
    assert deadline(predicates, 60.0) == 600.0
    assert deadline(predicates, 9999.0) == 600.0
    assert deadline((), 0.0) == 600.0


def test_only_expressions_are_asked_for_and_only_once_for_a_version() -> None:
    other = ReadyWhen(type="CEL", expression="true")
    predicates = (ReadyWhen(), CEL, other, SYNCED)
    assert to_be_asked(predicates, live(), {}) == [EXPRESSION, "true"]
    known = {EXPRESSION: Answer("7", READY), "true": Answer("6", READY)}
    assert to_be_asked(predicates, live(), known) == ["true"]
    assert to_be_asked((ReadyWhen(),), live(), {}) == []
