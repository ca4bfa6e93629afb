"""What goes over the pipes: the length of a JSON text in four bytes, and the text."""

import asyncio
from typing import Any

import msgspec

from pequod.evaluator.errors import KINDS, BrokenError, EvaluationError, OverLimitError, Problem

_HEADER = 4


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    verb: str
    cpu_seconds: int
    params: Any


class Failure(msgspec.Struct, frozen=True):
    """Why there is no result."""

    kind: str
    message: str
    problems: tuple[Problem, ...] = ()

    def error(self) -> EvaluationError:
        """The same as something that can be raised."""
        return KINDS.get(self.kind, BrokenError)(self.message, self.problems)


class Response(msgspec.Struct, frozen=True):
    """One of both."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None


def request(verb: str, params: object, *, cpu_seconds: int) -> bytes:
    """A frame that asks; the order of fields has no say in what is answered."""
    text = msgspec.json.encode(_Request(verb, cpu_seconds, params), order="deterministic")
    return len(text).to_bytes(_HEADER) + text


async def response(stream: asyncio.StreamReader, *, largest: int) -> Response:
    """The next frame of a worker; raises IncompleteReadError when there is none."""
    size = int.from_bytes(await stream.readexactly(_HEADER))
    if size > largest + 1024:
        raise OverLimitError(f"the result has {size} bytes and {largest} are allowed")
    try:
        return msgspec.json.decode(await stream.readexactly(size), type=Response)
    except msgspec.DecodeError as error:
        raise BrokenError(f"the evaluator answered nonsense: {error}") from error
