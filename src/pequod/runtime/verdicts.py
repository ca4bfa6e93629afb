"""How a pass over an object ends.

A pass that returns has done everything that it could. Two exceptions are verdicts, not errors; any
other exception is transient, and the pass is repeated with growing delays.
"""

from dataclasses import dataclass

from pequod.api.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything that could be done is done."""

    message: str = ""
    """What `Ready` says, for a person."""
    after: float | None = None
    """Seconds until the object is looked at again, should nothing wake it earlier."""


class Verdict(Exception):  # noqa: N818 -- not an error
    """A judgement on an object that the conditions show as it is."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Waiting(Verdict):
    """Something else must happen first; a watch, or the time given, wakes the object."""

    def __init__(self, reason: Reason, message: str, *, after: float | None = None) -> None:
        super().__init__(reason, message)
        self.after = after


class Stalled(Verdict):
    """Only a change of the object, or of something that it refers to, can help.

    What it refers to may change without being heard of: then it is looked at again after a time.
    """

    def __init__(self, reason: Reason, message: str, *, after: float | None = None) -> None:
        super().__init__(reason, message)
        self.after = after
