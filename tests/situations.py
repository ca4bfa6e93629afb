"""Nodes in every situation, for those who ask what is done about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pequod.api import reasons
from pequod.api.graph import ApplyPolicy
from pequod.graph.advance import Act, Decision, Moment, Situation
from pequod.graph.child import Child, ChildMetadata
from pequod.graph.kstatus import CURRENT, Health
from pequod.graph.record import Phase, Problem, Record

EPOCH = datetime(2026, 11, 15, tzinfo=UTC)
INVALID = Problem(reasons.INVALID, "it is wrong")
UNREACHABLE = Problem(reasons.UNREACHABLE, "no answer", transient=True)
CONFLICT = Problem(reasons.FIELD_CONFLICT, "kubectl manages it")
EXISTS = Problem(reasons.ALREADY_EXISTS, "it belongs to another graph")
FOUGHT = Problem(reasons.OWNERSHIP_CONFLICT, "somebody keeps taking it back")
FORCE = ApplyPolicy(conflict_policy="Force")
CREATE = ApplyPolicy(mode="Create")
OBSERVE = ApplyPolicy(mode="Observe")
PROGRESSING = Health("InProgress", "1 of 2")
CRASHING = Health("Failed", "it crashes")
APPLY = Decision(Act.APPLY)
FORCED = Decision(Act.APPLY, force=True)


def at(clock: float) -> Moment:
    return Moment(clock, EPOCH + timedelta(seconds=clock))


def live(health: Health = CURRENT, **rest: Any) -> Child:  # noqa: ANN401 -- fields of a child
    metadata = ChildMetadata("it", "shop", rest.pop("uid", "u"), rest.pop("version", "7"), "g")
    return Child(metadata=metadata, owned=rest.pop("owned", "o"), health=health, **rest)


def made(phase: Phase = "Ready", **rest: Any) -> Record:  # noqa: ANN401 -- fields of a record
    return Record(phase=phase, desired="d", owned="o", since=EPOCH, **rest)


def seen(record: Record, child: Child | None = None, **rest: Any) -> Situation:  # noqa: ANN401 -- fields of a situation
    known = {"policy": ApplyPolicy(), "uid": "u", "digest": "d", **rest}
    return Situation(record=record, child=child, **known)
