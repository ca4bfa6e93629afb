"""Which revision of a Transform is to run, and which have proved themselves. Pure.

A new revision that is not Ready by its deadline is given up for the last one that was, if the
Transform asks for that. Whatever was given up is not tried again until something else is rendered;
nothing is ever given up for a revision that is newer, so there is no loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pequod.api.graph import GraphMetadata
from pequod.api.platform import Revision, Rollout
from pequod.base.durations import seconds
from pequod.graph.revisions import MOST, Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What has become of a revision."""

    ready: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """The revisions of a Transform, newest first, with what has become of each."""

    known: tuple[Stored, ...]
    marks: dict[int, Mark]

    @classmethod
    def of(cls, known: Sequence[Stored], told: Sequence[Revision]) -> "History":
        """What is stored, with what the status says about it."""
        marks = {one.revision: Mark(ready=one.ready, failed=one.failed) for one in told}
        return cls(tuple(known), {one.number: marks.get(one.number, Mark()) for one in known})

    @property
    def newest(self) -> Stored | None:
        """What was rendered last."""
        return self.known[0] if self.known else None

    def holding(self, render_hash: str | None) -> Stored | None:
        """The newest revision of a rendering: that is what a graph with it holds."""
        return next((one for one in self.known if one.render_hash == render_hash), None)

    def find(self, number: int) -> Stored | None:
        """The revision of a number."""
        return next((one for one in self.known if one.number == number), None)

    def with_known(self, stored: Stored) -> "History":
        """With a revision that is perhaps new."""
        if self.find(stored.number) is not None:
            return self
        return History((stored, *self.known), self.marks | {stored.number: Mark()})

    def proved(self, stored: Stored) -> "History":
        """A revision was seen Ready."""
        mark = replace(self.marks[stored.number], ready=True, failed=False)
        return History(self.known, self.marks | {stored.number: mark})

    def given_up(self, stored: Stored) -> "History":
        """A revision has not become Ready in time."""
        mark = replace(self.marks[stored.number], failed=True)
        return History(self.known, self.marks | {stored.number: mark})

    def has_failed(self, stored: Stored) -> bool:
        """Whether a revision was given up."""
        return self.marks[stored.number].failed

    def has_proved(self, stored: Stored) -> bool:
        """Whether a revision was Ready once."""
        return self.marks[stored.number].ready

    def last_good(self, before: Stored) -> Stored | None:
        """The newest revision before another one that was Ready once."""
        for one in self.known:
            if one.number < before.number and self.marks[one.number].ready:
                return one
        return None

    def told(self) -> tuple[Revision, ...]:
        """As the status has it."""
        return tuple(
            Revision(
                revision=one.number,
                render_hash=one.render_hash,
                created_at=one.created_at,
                digest=one.digest or None,
                ready=self.marks[one.number].ready,
                failed=self.marks[one.number].failed,
            )
            for one in self.known[:MOST]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The newest revision while it runs, has never been Ready, and there is a way back."""

    wanted: Stored
    good: Stored
    """What it is given up for."""
    since: datetime | None
    """When its time began."""
    deadline: float

    @classmethod
    def of(
        cls, history: History, metadata: GraphMetadata, rollout: Rollout | None
    ) -> "Trial | None":
        """The trial that goes on with what a graph holds, if any does."""
        wanted = history.newest
        if rollout is None or not rollout.auto_rollback or wanted is None:
            return None
        good = history.last_good(wanted)
        if good is None or good.render_hash == wanted.render_hash:
            return None
        if wanted.render_hash != metadata.render_hash or history.has_proved(wanted):
            return None
        return cls(
            wanted=wanted,
            good=good,
            since=metadata.rendered_at,
            deadline=seconds(rollout.deadline),
        )

    def is_over(self, now: datetime) -> bool:
        """Whether the revision should be Ready by now."""
        return is_overdue(self.since, self.deadline, now)

    def left(self, now: datetime) -> float | None:
        """Seconds until that is so."""
        return remaining(self.since, self.deadline, now)


def is_overdue(since: datetime | None, deadline: float, now: datetime) -> bool:
    """Whether what began at a time should be done by now."""
    return since is not None and now - since >= timedelta(seconds=deadline)


def remaining(since: datetime | None, deadline: float, now: datetime) -> float | None:
    """Seconds until that is so."""
    if since is None:
        return None
    return max((since + timedelta(seconds=deadline) - now).total_seconds(), 0.1)
