"""What an API server has against an object, in words for a person, and what to make of it."""

import re

from pequod.api import reasons
from pequod.base.logs import one_line
from pequod.graph.misread import misread
from pequod.graph.model import Ref
from pequod.graph.record import LONGEST_TEXT, Problem
from pequod.kube.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    FieldConflictError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NoAnswerError,
    NotFoundError,
    OverloadedError,
    ServerError,
    TooLargeError,
    UnauthorizedError,
)

_IMMUTABLE = re.compile(
    r"immutable|may not change fields other than|updates to \w+ spec for fields other than"
    r"|may not change once set|cannot change roleRef|updates to \w+ are forbidden"
    r"|(cannot|can't|can not|may not|must not) be (changed|modified|updated)|self == oldSelf",
    re.IGNORECASE,
)
_OUR_MISTAKE = ("failed to create typed patch object", "failed to convert new object")
"""How an API server begins its answer of code 500 to an object that it cannot even read."""
_SHORT = 200
"""What an API server may say where what to do about it has to be said as well."""
_UID_MISMATCH = "uid mismatch"
_DIFFERENCE = re.compile(r"\\n@@.*")
"""A comparison of whole specs, as it looks where it was put on one line."""


def is_immutable(error: KubeError) -> bool:
    """Whether an apply failed because a field cannot be changed; policies name no field."""
    return isinstance(error, InvalidError) and any(
        cause.field and _IMMUTABLE.search(cause.message) for cause in error.causes
    )


def is_absent(error: KubeError) -> bool:
    """Whether an apply failed because the object of that UID is not there any more."""
    return isinstance(error, ApiError) and (
        _UID_MISMATCH in error.status.message
        or any(cause.field == "metadata.uid" for cause in error.causes)
    )


def is_terminating(error: KubeError) -> bool:
    """Whether an apply failed because its namespace is being deleted."""
    return isinstance(error, ForbiddenError) and any(
        cause.reason == "NamespaceTerminating" for cause in error.causes
    )


def explained(error: Exception, ref: Ref, *, sensitive: bool) -> Problem:
    """Why an apply failed, without anything of an object that is nobody's business."""
    match error:
        case FieldConflictError():
            return conflict(error, ref)
        case InvalidError() | BadRequestError() | TooLargeError() | ForbiddenError():
            return _refusal(error, ref, sensitive=sensitive)
        case ServerError():
            return _trouble(error, ref, sensitive=sensitive)
        case KubeError():
            return _other(error, ref, sensitive=sensitive)
    reason = getattr(error, "reason", None)
    if isinstance(reason, reasons.Reason):
        return Problem(reason, f"{ref}: {error}")
    text = f"{type(error).__name__}: the operator's log has the details; it tries again"
    return Problem(reasons.INTERNAL_ERROR, f"{ref}: {text}", transient=True)


def _other(error: KubeError, ref: Ref, *, sensitive: bool) -> Problem:
    """A problem between us and the API server, or something that is not there."""
    text = _said(error, sensitive=sensitive)
    match error:
        case NoAnswerError() | OverloadedError() | UnauthorizedError() | ConflictError():
            return Problem(error.reason, f"{ref}: {text}; it is tried again", transient=True)
        case NotFoundError():
            return Problem(error.reason, f"{ref}: {text}; create what is missing")
    return Problem(error.reason, f"{ref}: {text}")


def holders(error: FieldConflictError) -> str:
    """Who has the fields that an apply wanted, and which these are."""
    by_manager: dict[str, list[str]] = {}
    for one in error.conflicts:
        by_manager.setdefault(one.manager, []).append(one.field)
    return "; ".join(
        f"{manager} manages {', '.join(fields[:5])}"
        + (f" and {len(fields) - 5} more" if len(fields) > 5 else "")
        for manager, fields in by_manager.items()
    )


def conflict(error: FieldConflictError, ref: Ref, *, fought: bool = False) -> Problem:
    """Who has the fields that an apply wanted, and what can be done about it."""
    who = holders(error)
    if fought:
        return Problem(
            reasons.OWNERSHIP_CONFLICT,
            f"{ref}: {who or 'somebody else'}, and keeps taking it back: stop that manager, or "
            "remove these fields from the graph",
        )
    return Problem(
        reasons.FIELD_CONFLICT,
        f"{ref}: {who or error}: remove these fields from the graph, or set "
        "applyPolicy.conflictPolicy to Force",
    )


def immutable(error: ApiError, ref: Ref, *, sensitive: bool) -> Problem:
    """Which field cannot change, and what would help."""
    fields = ", ".join(dict.fromkeys(cause.field for cause in error.causes if cause.field))
    said = "" if sensitive else f" ({one_line(_said(error, sensitive=False), _SHORT)})"
    return Problem(
        reasons.IMMUTABLE,
        f"{ref}: {fields or 'a field'} cannot be changed{said}: change it back, give the object "
        "another name, or set applyPolicy.recreate to OnImmutable to have it deleted and made anew",
    )


def _refusal(error: ApiError, ref: Ref, *, sensitive: bool) -> Problem:
    if is_immutable(error):
        return immutable(error, ref, sensitive=sensitive)
    if is_terminating(error):
        return Problem(
            reasons.NAMESPACE_TERMINATING,
            f"{ref}: the namespace {ref.namespace} is being deleted; wait until it is gone, then "
            "create it again",
        )
    return Problem(error.reason, f"{ref}: {_said(error, sensitive=sensitive)}")


def _trouble(error: ServerError, ref: Ref, *, sensitive: bool) -> Problem:
    text = _said(error, sensitive=sensitive)
    if error.status.message.startswith(_OUR_MISTAKE):
        wrong = misread(error.status.message, sensitive=sensitive)
        return Problem(reasons.INVALID, f"{ref}: {wrong or text}")
    return Problem(error.reason, f"{ref}: {text}; it is tried again", transient=True)


def _said(error: KubeError, *, sensitive: bool) -> str:
    if not sensitive or not isinstance(error, ApiError):
        return one_line(_DIFFERENCE.sub("", str(error)), LONGEST_TEXT)
    fields = ", ".join(dict.fromkeys(cause.field for cause in error.causes if cause.field))
    place = f" about {fields}" if fields else ""
    return f"the API server answered with code {error.code}{place}; values are not shown"
