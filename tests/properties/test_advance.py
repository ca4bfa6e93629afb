"""Whatever happens in a cluster, nodes move in order, come to rest, and then nothing is done.

Others edit, take over, delete, strip labels and break things; the API server fails; the process
ends between any two writes. The cluster is a simulated one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy
from pequod.graph import advance
from pequod.graph.kstatus import CURRENT, Health
from pequod.graph.model import Plan
from pequod.graph.record import RECREATIONS, RETAKE_WINDOW, RETAKES
from simulation import (
    APPLY,
    CREATE,
    FORCE,
    OBSERVE,
    PROGRESSING,
    TROUBLE,
    CrashError,
    Operator,
    Thing,
    all_become_healthy,
    observed,
    operator_of,
    planned,
)

HEALTHS = (CURRENT, PROGRESSING, Health("Failed", "it crashes"))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens, to one of the nodes."""

    what: str
    which: int
    number: int


TO_OBJECTS: dict[str, Callable[[Operator, str, Thing, int], object]] = {
    "edit": lambda _o, _id, thing, _n: thing.edit("edited", taken=True),
    "revert": lambda o, id_, thing, _n: thing.edit(o.values[id_]),
    "remove field": lambda _o, _id, thing, _n: thing.edit(""),
    "strip": lambda _o, _id, thing, _n: setattr(thing, "labelled", False),
    "delete": lambda o, id_, _thing, _n: o.cluster.things.pop(id_),
    "begin to delete": lambda _o, _id, thing, _n: setattr(thing, "deleting", True),
    "recreate": lambda o, id_, thing, _n: o.cluster.make(id_, thing.value),
    "health": lambda _o, _id, thing, n: setattr(thing, "health", HEALTHS[n % 3]),
}
TO_EVERYTHING: dict[str, Callable[[Operator, str, int], object]] = {
    "wait": lambda o, _id, n: setattr(o, "clock", o.clock + n * 37.0),
    "wish": lambda o, id_, n: o.values.update({id_: f"value {n}"}),
    "trouble": lambda o, _id, n: setattr(o.cluster, "failing", n),
    "crash": lambda o, _id, n: setattr(o, "crash_in", n),
    "heal": lambda o, _id, _n: all_become_healthy(o)(),
    "provide": lambda o, _id, _n: provided(o),
}


def happen(event: Event, operator: Operator) -> None:
    """Let something happen."""
    id_ = operator.plan.order[event.which % len(operator.plan.order)]
    if event.what in TO_EVERYTHING:
        TO_EVERYTHING[event.what](operator, id_, event.number)
    elif event.what and (thing := operator.cluster.things.get(id_)) is not None:
        thing.version += 1
        TO_OBJECTS[event.what](operator, id_, thing, event.number)


WHAT = (*TO_EVERYTHING, *TO_OBJECTS, "health", "heal", "heal")
EVENTS = st.lists(
    st.lists(
        st.builds(Event, st.sampled_from(WHAT), st.integers(0, 5), st.integers(0, 6)),
        min_size=1,
        max_size=3,
    ),
    max_size=15,
)
"""What happens between one pass and the next."""

SEEDS = st.integers(0, 9)


def plans(*policies: ApplyPolicy) -> st.SearchStrategy[Plan]:
    choices = st.tuples(st.integers(0, 63), st.sampled_from(policies))
    return st.lists(choices, min_size=1, max_size=6).map(planned)


def lived(operator: Operator, events: list[list[Event]]) -> None:
    """Let things happen, with passes between them; in the beginning all is well."""
    provided(operator)
    operator.passes(20, tick=all_become_healthy(operator))
    for batch in events:
        for event in batch:
            happen(event, operator)
        try:
            operator.work()
        except CrashError:
            operator.crash_in = None
            operator.start()
        operator.clock += 0.3


def calmed(operator: Operator) -> None:
    """Nobody does anything any more, and what is in the way was cleared away."""
    cluster = operator.cluster
    cluster.failing, operator.crash_in = 0, None
    for id_, thing in list(cluster.things.items()):
        known = operator.run.inventory.uid(operator.ref(id_).id) == thing.uid
        if thing.deleting or not (thing.labelled or known or observed(operator, id_)):
            del cluster.things[id_]
        elif thing.taken:
            thing.taken, thing.value = False, "nobody's"
    provided(operator)


def provided(operator: Operator) -> None:
    """Others have made what is theirs to make."""
    for id_ in operator.plan.order:
        if observed(operator, id_) and id_ not in operator.cluster.things:
            operator.cluster.make(id_, "theirs", labelled=False)


@given(plans(APPLY, APPLY, FORCE, OBSERVE), EVENTS, SEEDS)
@settings(max_examples=100, deadline=None)
def test_when_everybody_has_calmed_down_everything_is_ready_and_nothing_is_done(
    plan: Plan, events: list[list[Event]], seed: int
) -> None:
    operator = operator_of(plan, seed)
    lived(operator, events)
    calmed(operator)
    operator.passes(6 + 3 * len(plan.order), tick=all_become_healthy(operator))
    for id_ in plan.order:
        if not observed(operator, id_):
            thing = operator.cluster.things[id_]
            assert thing.value == operator.values[id_]
            assert thing.uid == operator.run.inventory.uid(operator.ref(id_).id)
    assert_quiet(operator)


def assert_quiet(operator: Operator) -> None:
    """Nothing is done any more, however long one waits, and after a restart."""
    operator.work()
    stored, acts = operator.stored, operator.acts
    for pause in (0.1, 3600.0, 86400.0):
        operator.clock += pause
        operator.start()
        assert operator.work() is None
        asked = operator.asked
        assert operator.work() is None
        assert operator.asked == asked, "answers are lost with the process, and only with it"
        assert operator.stored == stored
        assert operator.acts == acts


@given(plans(APPLY, CREATE, OBSERVE), EVENTS, SEEDS)
@settings(max_examples=70, deadline=None)
def test_whatever_happens_no_node_goes_where_it_cannot_go(
    plan: Plan, events: list[list[Event]], seed: int
) -> None:
    """Order, legal transitions, and that nothing foreign is written, are asserted on the way."""
    operator = operator_of(plan, seed)
    lived(operator, events)
    for id_ in plan.order:
        assert operator.stage(id_) in {"waiting", "failed", "unhealthy", "applied", "ready"}


FATES = ("wish", "wish", "delete", "begin to delete", "recreate", "edit", "strip", "health", "")


@given(
    plans(APPLY), st.lists(st.sampled_from(FATES), min_size=12, max_size=12), st.booleans(), SEEDS
)
@settings(max_examples=70, deadline=None)
def test_a_change_waits_for_dependencies_that_were_ready_before(
    plan: Plan,
    fates: list[str],
    trouble: bool,  # noqa: FBT001 -- whether the first writes fail
    seed: int,
) -> None:
    """Everything was ready; then much happens at the same time, and the order is kept."""
    operator = operator_of(plan, seed)
    operator.passes(20, tick=all_become_healthy(operator))
    for index, fate in enumerate(fates):
        happen(Event(fate, index % 6, 1 + index // 6), operator)
    operator.cluster.failing = 2 if trouble else 0
    operator.work()
    calmed(operator)
    operator.passes(6 + 3 * len(plan.order), tick=all_become_healthy(operator))
    assert_quiet(operator)


@given(plans(CREATE), EVENTS)
@settings(max_examples=40, deadline=None)
def test_what_is_made_once_is_not_made_twice(plan: Plan, events: list[list[Event]]) -> None:
    """As long as it was written down that it was made."""
    operator = operator_of(plan)
    lived(operator, [[one for one in batch if one.what != "crash"] for batch in events])
    written = [id_ for _, id_, _ in operator.cluster.writes]
    assert sorted(written) == sorted(plan.order)


@given(plans(APPLY), st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_a_crash_between_any_two_writes_makes_nothing_twice(
    plan: Plan, first: int, second: int
) -> None:
    operator = operator_of(plan)
    tick = all_become_healthy(operator)
    for crash_in in (first, second):
        operator.crash_in = crash_in
        try:
            operator.passes(30, tick=tick)
        except CrashError:
            operator.crash_in = None
            operator.start()
    operator.crash_in = None
    operator.passes(30, tick=tick)
    assert sorted(operator.cluster.created) == sorted(plan.order)
    assert_quiet(operator)


def test_a_pass_ends_when_what_was_made_before_a_crash_is_somebody_elses_by_now() -> None:
    operator = operator_of(planned([(0, APPLY)]))
    operator.crash_in = 1
    with pytest.raises(CrashError):
        operator.work()
    operator.crash_in = None
    operator.start()
    operator.cluster.things["n0"].edit("theirs", taken=True)
    operator.work()
    problem = operator.record("n0").problem
    assert problem is not None
    assert problem.reason == reasons.FIELD_CONFLICT
    assert operator.acts == 2


@pytest.mark.parametrize("pause", [0.1, 10.0, 150.0, 250.0, 700.0])
def test_a_fight_is_given_up_and_said_and_looked_at_again_later(pause: float) -> None:
    """Somebody changes our field after every apply, for a day."""
    operator = operator_of(planned([(0, APPLY)]))
    operator.passes(5, tick=all_become_healthy(operator))
    cluster = operator.cluster
    cluster.writes.clear()
    conflicts = 0

    def fight(id_: str) -> None:
        cluster.things[id_].value, cluster.things[id_].taken = "theirs", True

    fight("n0")
    operator.told = fight
    acts, end = operator.acts, operator.clock + 86400.0
    while operator.clock < end:
        operator.work()
        problem = operator.record("n0").problem
        conflicts += problem is not None and problem.reason == reasons.OWNERSHIP_CONFLICT
        rests = operator.record("n0").retry_at
        operator.clock = max(operator.clock + pause, rests)
    times = [at for at, _, forced in cluster.writes if forced]
    assert times == [at for at, _, _ in cluster.writes], "they have it: we only write by force"
    for at in times:
        assert sum(at <= other < at + RETAKE_WINDOW for other in times) <= RETAKES
    assert bool(conflicts) is (pause < RETAKE_WINDOW / RETAKES)
    most = RETAKES * (86400.0 / RETAKE_WINDOW + 1)
    assert operator.acts - acts <= 2 * most, "every retake is followed by one refusal at most"
    operator.told = lambda _id: None
    operator.passes(10, tick=all_become_healthy(operator))
    assert_quiet(operator)


FIGHTS: dict[str, tuple[Callable[[Operator], object], int]] = {
    "remove field": (lambda o: o.cluster.things["n0"].edit(""), RETAKES + 1),
    "strip": (lambda o: setattr(o.cluster.things["n0"], "labelled", False), RECREATIONS),
    "delete": (lambda o: o.cluster.things.pop("n0"), RECREATIONS),
}


@pytest.mark.parametrize("how", FIGHTS)
@pytest.mark.parametrize("policy", [APPLY, FORCE])
def test_a_fight_with_somebody_who_leaves_no_name_is_given_up_as_well(
    how: str, policy: ApplyPolicy
) -> None:
    undo, most = FIGHTS[how]
    operator = operator_of(planned([(0, policy)]))
    operator.passes(5, tick=all_become_healthy(operator))
    operator.cluster.writes.clear()
    undo(operator)
    operator.told = lambda _id: undo(operator)
    end, said = operator.clock + 7200.0, set[str]()
    while operator.clock < end:
        operator.work()
        problem = operator.record("n0").problem
        said |= {problem.reason} if problem is not None else set()
        operator.clock += 1.0
    times = [at for at, _, _ in operator.cluster.writes]
    for at in times:
        assert sum(at <= other < at + RETAKE_WINDOW for other in times) <= most
    assert said == {reasons.OWNERSHIP_CONFLICT}
    operator.told = lambda _id: None
    operator.passes(10, tick=all_become_healthy(operator))
    assert_quiet(operator)


@given(st.integers(1, 15), st.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_tries_become_rarer_until_something_else_is_asked_for(first: int, second: int) -> None:
    operator = operator_of(planned([(0, APPLY)]))
    for value, tries in (("value 0", first), ("value 1", second)):
        operator.values["n0"] = value
        operator.cluster.failing = tries
        delays = []
        for _ in range(tries):
            before = operator.clock
            operator.work()
            record = operator.record("n0")
            assert record.problem == TROUBLE
            operator.work()
            assert operator.clock == before
            delays.append(record.retry_at - operator.clock)
            operator.clock = record.retry_at
        assert delays[0] <= advance.RETRY.first
        assert all(0.8 * one <= other for one, other in pairwise(delays))
        assert delays[-1] <= advance.RETRY.limit
        assert delays[-1] >= 0.8 * min(advance.RETRY.first * 2 ** (tries - 1), 300.0)
    operator.passes(5, tick=all_become_healthy(operator))
