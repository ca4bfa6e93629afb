"""Why a call has no result.

RpcError
 ├─ UnansweredError   nothing came back, or nobody is there
 ├─ RefusedError      an HTTP status instead of an answer
 ├─ AnsweredError     the server says what is wrong with the call
 └─ GarbageError      an answer that makes no sense
"""


class RpcError(Exception):
    """A call without a result; its text may be shown to anybody."""


class UnansweredError(RpcError):
    """Nothing came back, or nobody is there."""


class RefusedError(RpcError):
    """An HTTP status instead of an answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class AnsweredError(RpcError):
    """The server says what is wrong with the call."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class GarbageError(RpcError):
    """An answer that makes no sense."""
