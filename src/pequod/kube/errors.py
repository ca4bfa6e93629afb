"""What can go wrong between us and an API server, as a tree.

```
KubeError
├── CredentialsError        our own credentials cannot be used: nothing was sent
├── FencedError             we may not write any more: nothing was sent
├── UnknownKindError        the API server does not serve that kind, and said so itself
├── NoAnswerError           whether a write has happened is unknown
│   ├── UnreachableError      no connection
│   ├── UntrustedServerError  a connection, but not to the server that we were told of
│   ├── TimedOutError         no answer in time
│   └── BrokenAnswerError     an answer that ends early or makes no sense
└── ApiError                the API server's own words, as a Status
    ├── BadRequestError  UnauthorizedError  ForbiddenError  NotFoundError  GoneError
    ├── TooLargeError  InvalidError  OverloadedError  ServerError
    └── ConflictError
        ├── AlreadyExistsError
        └── FieldConflictError    names managers and fields
```

Each carries a `reason` for the condition that reports it. A caller that treats one of them as
"nothing is there" is wrong, except for NotFoundError, which says exactly that.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from pequod.api import reasons
from pequod.api.reasons import Reason
from pequod.base.logs import one_line
from pequod.kube.objects import MISFITS

_LONGEST_MESSAGE = 1024
_MANAGER = re.compile(
    r'^conflict with "(?P<manager>.*?)"(?: with subresource "(?P<part>[^"]*)")?(?: |$)'
)


class KubeError(Exception):
    """Something went wrong between us and an API server."""

    reason: ClassVar[Reason] = reasons.API_ERROR


class CredentialsError(KubeError):
    """Our own credentials cannot be used."""

    reason = reasons.BAD_CREDENTIALS


class FencedError(KubeError):
    """A write that must not happen any more: somebody else may be leading by now."""

    reason = reasons.NOT_LEADING


class UnknownKindError(KubeError):
    """A kind that the API server does not serve."""

    reason = reasons.UNKNOWN_KIND


class NoAnswerError(KubeError):
    """No answer, or none that can be understood: whether a write has happened is unknown."""


class UnreachableError(NoAnswerError):
    """No connection to the API server."""

    reason = reasons.UNREACHABLE


class UntrustedServerError(NoAnswerError):
    """Something answers there that cannot prove to be the API server we were told of."""

    reason = reasons.UNTRUSTED_SERVER


class TimedOutError(NoAnswerError):
    """The API server took longer than it may."""

    reason = reasons.TIMED_OUT


class BrokenAnswerError(NoAnswerError):
    """An answer that ends early or makes no sense."""

    reason = reasons.BROKEN_ANSWER


class Cause(msgspec.Struct, frozen=True):
    """One of the causes that a Status lists."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a Status says about the object and the causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """The API server's own words on a failure."""

    message: str = ""
    reason: str = ""
    details: Details | None = None
    code: int = 0


class ApiError(KubeError):
    """A refusal by the API server."""

    def __init__(
        self, code: int, status: Status | None = None, *, retry_after: float | None = None
    ) -> None:
        self.code = code
        self.status = status or Status(code=code)
        self.details = self.status.details or Details()
        self.causes = self.details.causes or ()
        after = self.details.retry_after_seconds or None
        self.retry_after = retry_after if retry_after is not None else after
        text = self.status.message or f"the API server answered with code {code}"
        super().__init__(one_line(text, _LONGEST_MESSAGE))


class BadRequestError(ApiError):
    """400: the request itself is wrong."""

    reason = reasons.BAD_REQUEST


class UnauthorizedError(ApiError):
    """401: the API server does not know who we are."""

    reason = reasons.UNAUTHORIZED


class ForbiddenError(ApiError):
    """403: the API server knows who we are, and that we may not."""

    reason = reasons.FORBIDDEN


class NotFoundError(ApiError):
    """404: the object is not there, or its kind is not."""

    reason = reasons.NOT_FOUND


class ConflictError(ApiError):
    """409: the object is not, or no longer, what the request took it for."""

    reason = reasons.CONFLICT


class AlreadyExistsError(ConflictError):
    """409: an object of that name is there already."""

    reason = reasons.ALREADY_EXISTS


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that somebody else manages."""

    manager: str
    field: str
    part: str = ""
    """The sub-resource that the manager wrote it through, for example `scale`."""


class FieldConflictError(ConflictError):
    """409: other managers have fields that an apply wanted."""

    reason = reasons.FIELD_CONFLICT

    @property
    def conflicts(self) -> tuple[FieldConflict, ...]:
        """Who manages what."""
        return tuple(_conflict(cause) for cause in self.causes if _is_conflict(cause))

    def with_others(self, but: Callable[[FieldConflict], bool]) -> "FieldConflictError | None":
        """The same without some of the conflicts; None when there is no other."""
        left = tuple(one for one in self.causes if _is_conflict(one) and not but(_conflict(one)))
        if not left:
            return None
        details = msgspec.structs.replace(self.details, causes=left)
        return FieldConflictError(self.code, msgspec.structs.replace(self.status, details=details))


class GoneError(ApiError):
    """410: that resource version is no longer known."""

    reason = reasons.EXPIRED


class TooLargeError(ApiError):
    """413: more than the API server takes."""

    reason = reasons.TOO_LARGE


class InvalidError(ApiError):
    """422: the object breaks rules of its kind; the causes name them."""

    reason = reasons.INVALID


class OverloadedError(ApiError):
    """429: too many requests; `retry_after` says when to come back."""

    reason = reasons.OVERLOADED


class ServerError(ApiError):
    """5xx: the API server has a problem of its own."""

    reason = reasons.SERVER_ERROR


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    413: TooLargeError,
    422: InvalidError,
    429: OverloadedError,
}


def api_error(code: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error that an answer stands for; its body need not be a Status."""
    return _class_for(code, status := _status(code, body))(
        code, status, retry_after=_seconds(retry_after)
    )


def _class_for(code: int, status: Status) -> type[ApiError]:
    if code == 409 and status.reason == "AlreadyExists":
        return AlreadyExistsError
    causes = (status.details.causes if status.details else None) or ()
    if code == 409 and any(cause.reason == "FieldManagerConflict" for cause in causes):
        return FieldConflictError
    if code == 422 and any(cause.field == "metadata.uid" for cause in causes):
        # How a patch is told that another object has the name by now.
        return ConflictError
    return _BY_CODE.get(code, ServerError if code >= 500 else ApiError)


def _status(code: int, body: bytes) -> Status:
    try:
        return msgspec.json.decode(body, type=Status)
    except MISFITS:
        text = one_line(body[:_LONGEST_MESSAGE].decode(errors="replace").strip())
        return Status(code=code, message=f"code {code}: {text}" if text else "")


def _seconds(header: str | None) -> float | None:
    """The header as seconds; its other form, a date, is not one that API servers use."""
    return float(header) if header is not None and header.isdecimal() else None


def _is_conflict(cause: Cause) -> bool:
    return cause.reason == "FieldManagerConflict"


def _conflict(cause: Cause) -> FieldConflict:
    found = _MANAGER.match(cause.message)
    if found is None:
        return FieldConflict(cause.message, cause.field)
    return FieldConflict(found["manager"], cause.field, found["part"] or "")
