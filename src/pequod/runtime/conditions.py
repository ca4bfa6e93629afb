"""The conditions of an object through one pass: pure, and the only place that knows their rules.

- Each condition says of which generation it speaks, and when its status last changed.
- `Reconciling` and `Stalled` are there only while true (kstatus).
- After a transient error, what was known of this generation stays: the failed step says so, later
  ones and `Ready` do not flap. Only a generation that never came that far has unknowns.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Literal

from pequod.api import reasons
from pequod.api.meta import Condition

READY = "Ready"
RECONCILING = "Reconciling"
STALLED = "Stalled"

_LONGEST = 4096

Truth = Literal["True", "False", "Unknown"]


class Conditions:
    """What was known of an object, and what this pass finds out."""

    def __init__(
        self, before: Iterable[Condition], *, generation: int, steps: Sequence[str], now: datetime
    ) -> None:
        self.before = tuple(before)
        self._known = {condition.type: condition for condition in self.before}
        self._generation = generation
        self._steps = tuple(step for step in steps if step != READY)
        self._now = now.replace(microsecond=0)

    def mark(self, name: str, status: Truth, reason: str, message: str) -> None:
        """Say something of one aspect."""
        known = self._known.get(name)
        same = known is not None and known.status == status
        self._known[name] = Condition(
            type=name,
            status=status,
            reason=str(reason),
            message=message[:_LONGEST],
            last_transition_time=known.last_transition_time if same and known else self._now,
            observed_generation=self._generation,
        )

    def speaks_of_now(self, name: str) -> bool:
        """Whether an aspect is known of this very generation."""
        known = self._known.get(name)
        return known is not None and known.observed_generation == self._generation

    def is_true(self, name: str) -> bool:
        """Whether an aspect is known to hold for this very generation."""
        return self.speaks_of_now(name) and self._known[name].status == "True"

    def succeeded(self, message: str) -> None:
        """The pass came to its end."""
        self._drop(RECONCILING, STALLED)
        self.mark(READY, "True", reasons.SUCCEEDED, message)

    def waits(self, reason: str, message: str) -> None:
        """The pass came as far as it could for now."""
        self._drop(STALLED)
        self.mark(RECONCILING, "True", reason, message)
        self.mark(READY, "False", reason, message)
        self._unknowns()

    def stalls(self, reason: str, message: str) -> None:
        """The pass came as far as it ever will with this spec."""
        self._drop(RECONCILING)
        self.mark(STALLED, "True", reason, message)
        self.mark(READY, "False", reason, message)
        self._unknowns()

    def fails(self, reason: str, message: str) -> None:
        """The pass met an error that may be gone the next time."""
        self._drop(STALLED)
        self.mark(RECONCILING, "True", reason, message)
        if not self.is_true(READY):
            self.mark(READY, "False", reason, message)
        self._unknowns()

    def suspends(self, message: str) -> None:
        """Nothing is done; what is known stays as it is."""
        self._drop(RECONCILING)
        if READY not in self._known:
            self.mark(READY, "Unknown", reasons.SUSPENDED, message)

    def result(self) -> tuple[Condition, ...]:
        """Everything that is known now: the steps in their order, then the summary."""
        order = (*self._steps, READY, RECONCILING, STALLED)
        first = [self._known[name] for name in order if name in self._known]
        others = [known for name, known in self._known.items() if name not in order]
        return (*first, *others)

    def _unknowns(self) -> None:
        for step in self._steps:
            if not self.speaks_of_now(step):
                self.mark(step, "Unknown", reasons.PROGRESSING, reasons.PROGRESSING.sentence)

    def _drop(self, *names: str) -> None:
        for name in names:
            self._known.pop(name, None)


def news(
    before: Sequence[Condition],
    after: Sequence[Condition],
    quiet: AbstractSet[str] = frozenset(),
) -> list[Condition]:
    """The conditions worth an event: those whose status or reason changed.

    The summary is news only when no step said the same thing, now or when it failed before. An
    unknown never is, nor that one of the quiet ones has become true, nor that something is still
    going on.
    """
    old = {condition.type: (condition.status, condition.reason) for condition in before}
    changed = [
        condition
        for condition in after
        if condition.status != "Unknown"
        and condition.type not in {RECONCILING, STALLED}
        and not (condition.status == "True" and condition.type in quiet)
        and not (condition.status == "False" and condition.reason in reasons.ON_THE_WAY)
        and old.get(condition.type) != (condition.status, condition.reason)
    ]
    steps = [c for c in after if c.type != READY and (c in changed or c.status == "False")]
    told = {(c.reason, c.message) for c in steps}
    return [c for c in changed if c.type != READY or (c.reason, c.message) not in told]
