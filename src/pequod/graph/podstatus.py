"""How the kinds that run pods do, and how an object of a foreign server is read for that.

Every rule here and in `kstatus`, which has the table of them all, turns a `Live` into a `Finding`.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

State = Literal["Current", "InProgress", "Failed", "Terminating"]

T = TypeVar("T", bool, int, str, list[Any])

_GENERATION = re.compile(r"-?[0-9]{1,18}")
_GREATEST = 2**63 - 1
_NO_DEADLINE = 2**31 - 1
_SHAPES = {bool: "true or false", int: "a number", str: "a text", list: "a list"}


class MisfitError(Exception):
    """A field does not have the shape that it should."""


class Finding(NamedTuple):
    """What a rule says; the text may still be of any length and hold anything."""

    state: State
    text: str = ""


CONTENT = Finding("Current")
UNSEEN = Finding("InProgress", "its controller has not looked at it yet")


class Condition(NamedTuple):
    """One condition of an object, as a sentence when it is turned into a text."""

    type: str
    status: str
    reason: str
    message: str

    def __str__(self) -> str:
        said = f"condition {self.type} is {self.status or 'not known yet'}"
        return joined(said, self.reason, self.message)


class Live:
    """An object of a foreign server: what is missing or null has a default, what is odd is told."""

    def __init__(self, object_: object, place: str = "") -> None:
        self._object = object_
        self._place = place

    def at(self, path: str) -> object:
        """Whatever is at a path."""
        names = path.split(".")
        value = self._object
        for depth, name in enumerate(names):
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise self._misfit(".".join(names[:depth]), "is not an object")
            value = value.get(name)
        return value

    def value(self, path: str, default: T) -> T:
        """What is at a path, of the type of the default."""
        value = self.at(path)
        if value is None:
            return default
        # To Python true is a number as well.
        if isinstance(value, type(default)) and isinstance(value, bool) is (default is False):
            return value
        raise self._misfit(path, f"is not {_SHAPES[type(default)]}")

    def text(self, path: str) -> str:
        """A text, empty when there is none."""
        return self.value(path, "")

    def count(self, path: str, default: int = 0) -> int:
        """A number of things."""
        number = self.value(path, default)
        if number != default and not 0 <= number <= _GREATEST:
            raise self._misfit(path, "is no number of things")
        return number

    def generation(self, path: str) -> int | None:
        """A generation; some kinds write it as a text, as Argo Rollouts and Istio do."""
        value = self.at(path)
        if isinstance(value, str) and _GENERATION.fullmatch(value):
            return int(value)
        number = self.value(path, 0)
        if abs(number) > _GREATEST:
            raise self._misfit(path, "is no generation")
        return None if value is None else number

    @cached_property
    def kind(self) -> tuple[str, str]:
        """Group and kind; the version makes no difference."""
        version, kind = self.text("apiVersion"), self.text("kind")
        if not version or not kind:
            raise MisfitError("it does not say of which kind it is")
        return version.rpartition("/")[0], kind

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions in their order."""
        return conditions(self.value("status.conditions", []))

    def condition(self, name: str) -> Condition | None:
        """The first condition of a type."""
        return next((one for one in self.conditions if one.type == name), None)

    def holds(self, name: str) -> bool:
        """Whether a condition is true."""
        found = self.condition(name)
        return found is not None and found.status == "True"

    def about(self, name: str) -> str:
        """A condition for people, even when it is missing."""
        return str(self.condition(name) or Condition(name, "", "", ""))

    def _misfit(self, path: str, what: str) -> MisfitError:
        where = ".".join(part for part in (self._place, path) if part)
        return MisfitError(f"{where or 'it'} {what}")


Rule = Callable[[Live], Finding]


def joined(*parts: str) -> str:
    """What is said, why, and in which words: as far as each is there."""
    return ": ".join(part for part in parts if part)


def conditions(entries: list[Any]) -> list[Condition]:
    """A list of conditions; reason and message are for people and may be anything."""
    found = []
    for entry in (Live(one, "status.conditions[]") for one in entries):
        words = (entry.at("reason"), entry.at("message"))
        reason, message = (word if isinstance(word, str) else "" for word in words)
        found.append(Condition(entry.text("type"), entry.text("status"), reason, message))
    return found


def phase(live: Live) -> str:
    """The phase of an object for people."""
    said = live.text("status.phase")
    if not said:
        return "its phase is not known yet"
    return joined(f"its phase is {said}", live.text("status.reason"), live.text("status.message"))


def deployment(live: Live) -> Finding:
    """All replicas are of the newest template and available; a paused one does not get there."""
    progress = live.condition("Progressing")
    if progress is not None and progress.reason == "ProgressDeadlineExceeded":
        return Finding("Failed", str(progress))
    wanted = live.count("spec.replicas", 1)
    if lack := _lack(live, wanted, "replicas", "updatedReplicas", "availableReplicas", _READY):
        return Finding("InProgress", lack + _cause(live))
    if wanted == 0:
        return CONTENT
    # Only with a deadline the controller says how far it has come.
    hurried = live.count("spec.progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE
    complete = progress is not None and progress.reason == "NewReplicaSetAvailable"
    if hurried and not (complete and live.holds("Progressing")):
        return Finding("InProgress", live.about("Progressing"))
    return CONTENT if live.holds("Available") else Finding("InProgress", live.about("Available"))


def _cause(live: Live) -> str:
    """Why replicas of a Deployment may be lacking."""
    if live.value("spec.paused", False):
        return "; it is paused"
    if live.holds("ReplicaFailure"):
        return f"; {live.about('ReplicaFailure')}"
    available = live.condition("Available")
    return f"; {available}" if available is not None and available.status != "True" else ""


_READY = "readyReplicas"
_REPLICAS = {
    "replicas": "exist",
    "fullyLabeledReplicas": "are labelled",
    "updatedReplicas": "are updated",
    "availableReplicas": "are available",
    "currentReplicas": "are of the current revision",
    _READY: "are ready",
}


def _lack(live: Live, wanted: int, *fields: str) -> str:
    """Of what there is too little, or too much; empty when the numbers are right."""
    for field in fields:
        if (there := live.count(f"status.{field}")) < wanted:
            return f"{there} of {wanted} replicas {_REPLICAS[field]}"
    there = live.count("status.replicas")
    return f"{there} replicas are there instead of {wanted}" if there > wanted else ""


def replica_set(live: Live) -> Finding:
    """All replicas are available, and pods can be made; for ReplicationControllers as well."""
    if live.holds("ReplicaFailure"):
        return Finding("InProgress", live.about("ReplicaFailure"))
    wanted = live.count("spec.replicas", 1)
    lack = _lack(live, wanted, "fullyLabeledReplicas", "availableReplicas", _READY)
    return Finding("InProgress", lack) if lack else CONTENT


def stateful_set(live: Live) -> Finding:
    """All replicas are ready, and those of the newest revision that should be."""
    wanted = live.count("spec.replicas", 1)
    lack = _lack(live, wanted, "replicas", _READY) or _outdated(live, wanted)
    return Finding("InProgress", lack) if lack else CONTENT


def _outdated(live: Live, wanted: int) -> str:
    """What an update of a StatefulSet still has to do; with `OnDelete` it is up to a person."""
    if live.text("spec.updateStrategy.type") == "OnDelete":
        return ""
    partition = live.count("spec.updateStrategy.rollingUpdate.partition", -1)
    if partition >= 0:
        updated, part = live.count("status.updatedReplicas"), wanted - partition
        return f"{updated} of {part} replicas are updated" if updated < part else ""
    if lack := _lack(live, wanted, "currentReplicas"):
        return lack
    same = live.text("status.currentRevision") == live.text("status.updateRevision")
    return "" if same else "the newest revision is not the current one yet"


_DAEMONS = {
    "currentNumberScheduled": "scheduled",
    "updatedNumberScheduled": "updated",
    "numberAvailable": "available",
    "numberReady": "ready",
}


def daemon_set(live: Live) -> Finding:
    """The newest pod is ready on every node that should have one."""
    wanted = live.count("status.desiredNumberScheduled", -1)
    if wanted < 0:
        return UNSEEN
    for field, word in _DAEMONS.items():
        if (there := live.count(f"status.{field}")) < wanted:
            return Finding("InProgress", f"{there} of {wanted} pods are {word}")
    return CONTENT


def pod(live: Live) -> Finding:
    """It is ready, or came to a good end."""
    said = live.text("status.phase")
    if said == "Succeeded" or (said == "Running" and live.holds("Ready")):
        return CONTENT
    if said == "Failed":
        return Finding("Failed", phase(live))
    waiting = _waiting(live)
    crashing = [name for name, reason in waiting.items() if reason == "CrashLoopBackOff"]
    if said == "Running" and crashing:
        return Finding("Failed", f"containers crash again and again: {', '.join(crashing)}")
    # How long a pod may be unschedulable is for those to say who know the time.
    scheduled = live.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return Finding("InProgress", str(scheduled))
    waits = "; ".join(f"container {name} waits: {reason}" for name, reason in waiting.items())
    ready = live.about("Ready") if said == "Running" else ""
    return Finding("InProgress", waits or ready or phase(live))


def _waiting(live: Live) -> dict[str, str]:
    """The containers that do not run, and for which reason."""
    path = "status.containerStatuses"
    containers = [Live(one, f"{path}[]") for one in live.value(path, [])]
    reasons = {one.text("name"): one.text("state.waiting.reason") for one in containers}
    return {name: reason for name, reason in reasons.items() if reason}


def job(live: Live) -> Finding:
    """It runs, or did so with success: who wants it complete asks for that condition."""
    if live.holds("Failed"):
        return Finding("Failed", live.about("Failed"))
    if live.holds("Complete"):
        return CONTENT
    if live.holds("Suspended"):
        return Finding("Current", live.about("Suspended"))
    if not live.text("status.startTime"):
        return Finding("InProgress", "it has not started yet")
    names = ("active", "succeeded", "failed")
    numbers = ", ".join(f"{live.count(f'status.{name}')} {name}" for name in names)
    return Finding("Current", f"pods: {numbers}")
