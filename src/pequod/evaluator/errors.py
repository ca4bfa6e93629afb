"""What can go wrong with an evaluation.

EvaluationError
├── ModuleError       what was evaluated is wrong; its author can mend it
├── MissingError      a path, a definition, a tag is not there
├── OverLimitError    it took more time, memory or output than it may
├── DeniedError       a registry wants other credentials
├── UnavailableError  a registry did not answer
└── BrokenError       the evaluator itself failed
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from pequod.api import reasons

MOST_TOLD = 5
"""Problems that one message lists."""


class Problem(msgspec.Struct, frozen=True):
    """One of several things that are wrong with a module."""

    message: str
    path: str = ""
    position: str = ""
    """File, line and column, relative to the tree."""

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return place + (f"{self.path}: " if self.path else "") + self.message


class EvaluationError(Exception):
    """Something was not evaluated."""

    reason: ClassVar[reasons.Reason] = reasons.EVALUATION_FAILED
    transient: ClassVar[bool] = False

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @property
    def told(self) -> str:
        """What is wrong, each thing once, and how much more there is."""
        if not self.problems:
            return str(self)
        shown = "; ".join(str(one) for one in self.problems[:MOST_TOLD])
        more = len(self.problems) - MOST_TOLD
        return f"{self}: {shown}" + (f"; and {more} more" if more > 0 else "")


class ModuleError(EvaluationError):
    """What was evaluated is wrong."""

    reason = reasons.INVALID_MODULE


class MissingError(EvaluationError):
    """Something that is needed is not there."""

    reason = reasons.INVALID_MODULE


class OverLimitError(EvaluationError):
    """It took more than it may."""

    reason = reasons.EVALUATION_LIMIT


class DeniedError(EvaluationError):
    """The registry wants other credentials."""


class UnavailableError(EvaluationError):
    """The registry did not answer."""

    transient = True


class BrokenError(EvaluationError):
    """The evaluator failed, or was asked nonsense."""

    transient = True


KINDS: dict[str, type[EvaluationError]] = {
    "module": ModuleError,
    "missing": MissingError,
    "limit": OverLimitError,
    "denied": DeniedError,
    "unavailable": UnavailableError,
}
"""By the name that the Go side has for them; all others are its own fault."""
