"""What can go wrong between a reference and its tree.

SourceError
├── BadReferenceError    the reference itself cannot mean anything
├── MissingError         the other side says that there is no such thing
├── DeniedError          the other side wants other credentials, or we refuse to send them
├── RefusedError         what was found breaks a rule: a link out of the tree, a conflict
├── TooLargeError        what was found is more than its limit
└── UnavailableError     nobody answered, or too slowly; the only one that is worth another try
"""

from typing import ClassVar

from pequod.api import reasons


class SourceError(Exception):
    """A reference that did not become a tree: which one, at which step, why, and what to do."""

    reason: ClassVar[reasons.Reason] = reasons.FETCH_FAILED
    transient: ClassVar[bool] = False
    """Whether the same question may have another answer soon."""

    def __init__(self, reference: str, *, step: str, problem: str, next_step: str) -> None:
        super().__init__(f"{reference}: {step}: {problem}; {next_step}")
        self.reference = reference
        self.step = step
        self.problem = problem
        self.next_step = next_step


class BadReferenceError(SourceError):
    """The reference cannot be understood, or names what may not be named."""

    reason = reasons.BAD_REFERENCE


class MissingError(SourceError):
    """There is no such repository, revision, tag, path or key."""

    reason = reasons.SOURCE_MISSING


class DeniedError(SourceError):
    """The credentials are missing, wrong, or not meant for that host."""

    reason = reasons.SOURCE_DENIED


class RefusedError(SourceError):
    """What was found may not be used."""

    reason = reasons.SOURCE_REFUSED


class TooLargeError(SourceError):
    """What was found is more than its limit."""

    reason = reasons.SOURCE_TOO_LARGE


class UnavailableError(SourceError):
    """The other side did not answer, or broke off."""

    reason = reasons.SOURCE_UNAVAILABLE
    transient = True
