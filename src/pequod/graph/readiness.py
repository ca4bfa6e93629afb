"""Whether the object of a node is ready, by the predicates that the node names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pequod.api.graph import ReadyWhen
from pequod.base.durations import seconds, words
from pequod.graph.child import Child, ChildCondition

DEFAULT = (ReadyWhen(),)


@dataclass(frozen=True, slots=True)
class Readiness:
    """What the predicates of a node say together."""

    ready: bool
    failed: bool = False
    """Whether waiting longer will not help by itself."""
    detail: str = ""
    """What is missing, for a person."""


READY = Readiness(ready=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a predicate that had to be asked for answered, for one version of the object."""

    resource_version: str
    readiness: Readiness


Answers = Mapping[str, Answer]
"""The answers of the predicates that need I/O, by their expression."""


def judged(
    predicates: Sequence[ReadyWhen], child: Child, answers: Answers, *, waited: float
) -> Readiness:
    """Whether an object that was applied `waited` seconds ago is ready."""
    verdicts = [_in_time(one, _holds(one, child, answers), waited) for one in predicates or DEFAULT]
    missing = [verdict for verdict in verdicts if not verdict.ready]
    failed = [verdict for verdict in missing if verdict.failed]
    return next(iter((*failed, *missing)), READY)


def _in_time(predicate: ReadyWhen, verdict: Readiness, waited: float) -> Readiness:
    """The same, or that it has taken too long."""
    limit = seconds(predicate.timeout)
    if verdict.ready or verdict.failed or waited < limit:
        return verdict
    detail = f"not ready within {words(limit)}: {verdict.detail}"
    return Readiness(ready=False, failed=True, detail=detail)


def deadline(predicates: Sequence[ReadyWhen], waited: float) -> float:
    """Seconds after which the next predicate gives up; those that have waited enough hold."""
    limits = [seconds(predicate.timeout) for predicate in predicates or DEFAULT]
    return min((limit for limit in limits if limit > waited), default=max(limits))


def to_be_asked(predicates: Sequence[ReadyWhen], child: Child, answers: Answers) -> list[str]:
    """The CEL expressions for which there is no answer about this version of the object."""
    version = child.metadata.resource_version
    return [
        predicate.expression
        for predicate in predicates
        if predicate.type == "CEL" and predicate.expression is not None
        if (known := answers.get(predicate.expression)) is None or known.resource_version != version
    ]


def _holds(predicate: ReadyWhen, child: Child, answers: Answers) -> Readiness:
    if child.deleting:
        return Readiness(ready=False, detail="somebody deletes it; it is made anew when it is gone")
    if predicate.type == "CEL":
        answer = answers.get(predicate.expression or "")
        return answer.readiness if answer else _not("its expression was not evaluated yet")
    if predicate.type == "HTTP":
        return Readiness(ready=False, failed=True, detail="readyWhen HTTP is not supported yet")
    return _TABLE[predicate.type](predicate, child)


def _current(_predicate: ReadyWhen, child: Child) -> Readiness:
    health = child.health
    if health.state == "Current":
        return READY
    detail = health.message or f"it is {health.state}"
    return Readiness(ready=False, failed=health.state == "Failed", detail=detail)


def _exists(_predicate: ReadyWhen, _child: Child) -> Readiness:
    return READY


def _condition_match(predicate: ReadyWhen, child: Child) -> Readiness:
    name, wanted = predicate.condition_type or "", predicate.condition_status or "True"
    found = _condition(child, name)
    if found is None:
        return _not(f"it has no condition {name} yet")
    if not found.current or not child.observed:
        return _not(f"condition {name} speaks of an earlier generation")
    if found.status == wanted:
        return READY
    said = f": {found.said}" if found.said else ""
    return _not(f"condition {name} is {found.status} instead of {wanted}{said}")


def _deployment_available(_predicate: ReadyWhen, child: Child) -> Readiness:
    available = _condition(child, "Available")
    if not child.observed:
        return _not("its newest generation was not seen by the Deployment controller yet")
    if available is not None and available.status == "True":
        return READY
    return _not(_about(available, "Available") or child.health.message or "it is not available yet")


def _job_complete(_predicate: ReadyWhen, child: Child) -> Readiness:
    complete, failed = _condition(child, "Complete"), _condition(child, "Failed")
    if complete is not None and complete.status == "True":
        return READY
    if failed is not None and failed.status == "True":
        return Readiness(ready=False, failed=True, detail=f"the Job failed: {failed.said}")
    return _not(child.health.message or "the Job is not complete yet")


_TABLE: dict[str, Callable[[ReadyWhen, Child], Readiness]] = {
    "Current": _current,
    "Exists": _exists,
    "ConditionMatch": _condition_match,
    "DeploymentAvailable": _deployment_available,
    "JobComplete": _job_complete,
}


def _condition(child: Child, name: str) -> ChildCondition | None:
    return next((one for one in child.conditions if one.type == name), None)


def _about(condition: ChildCondition | None, name: str) -> str:
    if condition is None:
        return ""
    said = f": {condition.said}" if condition.said else ""
    return f"condition {name} is {condition.status}{said}"


def _not(detail: str) -> Readiness:
    return Readiness(ready=False, detail=detail)
