"""Conditions say what is known, of which generation, and do not flap."""

from datetime import UTC, datetime, timedelta

from pequod.api import reasons
from pequod.api.meta import Condition
from pequod.runtime.conditions import Conditions, news

EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
NOW = EARLIER + timedelta(hours=1)
STEPS = ("Fetched", "Rendered", "Executed", "Ready")


def conditions(
    before: tuple[Condition, ...] = (), generation: int = 1, now: datetime = NOW
) -> Conditions:
    return Conditions(before, generation=generation, steps=STEPS, now=now)


def healthy(generation: int = 1) -> tuple[Condition, ...]:
    made = conditions(generation=generation, now=EARLIER)
    for step in STEPS[:-1]:
        made.mark(step, "True", reasons.SUCCEEDED, "")
    made.succeeded("fine")
    return made.result()


def states(result: tuple[Condition, ...]) -> dict[str, str]:
    return {condition.type: condition.status for condition in result}


def test_success_is_ready_and_neither_reconciling_nor_stalled() -> None:
    assert states(healthy()) == dict.fromkeys(STEPS, "True")


def test_after_a_transient_error_the_failed_step_says_so_and_ready_does_not_flap() -> None:
    made = conditions(healthy())
    made.mark("Fetched", "False", reasons.UNREACHABLE, "away")
    made.fails(reasons.UNREACHABLE, "away")
    assert states(made.result()) == {
        "Fetched": "False",
        "Rendered": "True",
        "Executed": "True",
        "Ready": "True",
        "Reconciling": "True",
    }


def test_a_transient_error_on_a_new_generation_leaves_the_later_steps_unknown() -> None:
    made = conditions(healthy(generation=1), generation=2)
    made.mark("Fetched", "False", reasons.UNREACHABLE, "away")
    made.fails(reasons.UNREACHABLE, "away")
    result = made.result()
    assert states(result) == {
        "Fetched": "False",
        "Rendered": "Unknown",
        "Executed": "Unknown",
        "Ready": "False",
        "Reconciling": "True",
    }
    assert {condition.observed_generation for condition in result} == {2}


def test_a_verdict_makes_an_object_unready_at_once() -> None:
    waiting = conditions(healthy())
    waiting.waits(reasons.SECRET_NOT_FOUND, "no Secret")
    assert states(waiting.result())["Ready"] == "False"
    assert states(waiting.result())["Reconciling"] == "True"
    stalled = conditions(waiting.result())
    stalled.stalls(reasons.INVALID_KUBECONFIG, "exec")
    assert states(stalled.result())["Stalled"] == "True"
    assert "Reconciling" not in states(stalled.result())


def test_recovery_removes_reconciling_and_stalled() -> None:
    stalled = conditions(healthy())
    stalled.stalls(reasons.INVALID_KUBECONFIG, "exec")
    made = conditions(stalled.result())
    made.succeeded("fine again")
    assert "Stalled" not in states(made.result())
    assert states(made.result())["Ready"] == "True"


def test_the_time_of_a_transition_moves_only_with_the_status() -> None:
    made = conditions(healthy())
    made.mark("Fetched", "True", reasons.SLOW, "slowly")
    made.mark("Rendered", "False", reasons.INVALID, "broken")
    times = {condition.type: condition.last_transition_time for condition in made.result()}
    assert times["Fetched"] == EARLIER
    assert times["Rendered"] == NOW


def test_saying_the_same_again_changes_nothing() -> None:
    before = healthy()
    made = conditions(before)
    for step in STEPS[:-1]:
        made.mark(step, "True", reasons.SUCCEEDED, "")
    made.succeeded("fine")
    assert made.result() == before


def test_suspending_keeps_what_is_known_and_explains_itself_where_nothing_is() -> None:
    made = conditions(healthy())
    made.suspends("suspended")
    assert made.result() == healthy()
    fresh = conditions()
    fresh.suspends("suspended")
    assert [(c.type, c.status, c.reason) for c in fresh.result()] == [
        ("Ready", "Unknown", "Suspended")
    ]


def test_conditions_of_others_are_left_alone() -> None:
    foreign = Condition(
        type="example.com/Seen",
        status="True",
        reason="Yes",
        message="",
        last_transition_time=EARLIER,
    )
    made = conditions((foreign, *healthy()))
    made.succeeded("fine")
    assert foreign in made.result()


def test_a_message_that_is_too_long_is_cut() -> None:
    made = conditions()
    made.stalls(reasons.INVALID, "x" * 100_000)
    assert all(len(condition.message) <= 4096 for condition in made.result())


def test_events_tell_of_changed_conditions_once() -> None:
    before = healthy()
    made = conditions(before)
    made.mark("Fetched", "False", reasons.UNREACHABLE, "away")
    made.waits(reasons.UNREACHABLE, "away")
    assert [condition.type for condition in news(before, made.result())] == ["Fetched"]
    assert news(made.result(), made.result()) == []


def test_an_unknown_is_no_event() -> None:
    made = conditions()
    made.fails(reasons.SERVER_ERROR, "500")
    assert [condition.type for condition in news((), made.result())] == ["Ready"]
