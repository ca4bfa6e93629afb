"""What a reconciler has besides the object: its steps, its clock, what it depends on."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pequod.api import reasons
from pequod.api.reasons import Reason
from pequod.base.telemetry import span
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key, Named
from pequod.runtime.conditions import Conditions
from pequod.runtime.dependencies import Dependencies
from pequod.runtime.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to tell about an object that no condition says."""

    type: Literal["Normal", "Warning"]
    reason: Reason
    note: str
    details: str = ""
    """More of it."""
    along_with: str = ""
    """UID of another object that may be about to tell the same: the details go along with that."""


@dataclass(slots=True)
class Step:
    """What a step says when it succeeds; the reconciler may say more."""

    reason: Reason = reasons.SUCCEEDED
    message: str = ""


class Context:
    """One pass over one object."""

    def __init__(
        self,
        key: Key,
        conditions: Conditions,
        dependencies: Dependencies,
        save: Callable[[], Awaitable[bool]],
        *,
        asked: bool = False,
    ) -> None:
        self.key = key
        self._conditions = conditions
        self._dependencies = dependencies
        self.save = save
        """Publish the status as it is now, before the pass goes on: intent before action.

        Returns whether that took a write, which the API server has accepted for this very object.
        """
        self.asked = asked
        """Whether somebody has asked for this very pass: then nothing waits for its time."""
        self.answered = True
        """Whether what somebody has asked for is done with this pass; a reconciler may deny it."""
        self.needed: set[tuple[Kind, Key]] = set()
        """What the object has turned out to depend on."""
        self.remarks: list[Remark] = []
        """What there is to tell when the pass has ended."""

    @property
    def now(self) -> datetime:
        """The time for people and for statuses; what is measured uses the loop's clock."""
        return datetime.now(UTC).replace(microsecond=0)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Do one step: the condition of that name tells how it went."""
        step = Step()
        with span(name):
            try:
                yield step
            except Exception as error:
                self.fails(name, error)
                raise
        self._conditions.mark(name, "True", step.reason, step.message)

    def fails(self, name: str, error: Exception) -> None:
        """Say why a step has failed, or will not be taken."""
        reason, message = explained(error)
        self._conditions.mark(name, "False", reason, message)

    def tell(
        self,
        reason: Reason,
        note: str,
        type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002 -- the Event's own word
        *,
        details: str = "",
        along_with: str = "",
    ) -> None:
        """Tell something about the object as an event, whatever its conditions say."""
        self.remarks.append(Remark(type, reason, note, details, along_with))

    async def observed(self, kind: Kind, key: Key) -> Named | None:
        """The metadata of an object that this one refers to; its changes wake this one."""
        self.needed.add((kind, key))
        return await self._dependencies.observed(self.key, kind, key)


def explained(error: BaseException) -> tuple[Reason, str]:
    """What a condition says of an error: only errors of ours speak for themselves.

    The text of any other may hold whatever passed through a library; it belongs into the log.
    """
    if isinstance(error, Verdict):
        return error.reason, error.message
    reason = getattr(error, "reason", None)
    if isinstance(reason, Reason):
        return reason, str(error)
    return (
        reasons.INTERNAL_ERROR,
        f"{type(error).__name__}: the operator's log has the details; it tries again",
    )
