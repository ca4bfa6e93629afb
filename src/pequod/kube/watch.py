"""A list and everything that happens to it afterwards, as one endless stream.

`Watch.events()` never ends by itself and never raises: it lists, follows, resumes where it was,
and begins anew only when the API server no longer knows that place (410). Streams are short on
purpose: the server ends each one within `STREAM` seconds with a bookmark of its newest version, so
a stream that is silent for longer than `IDLE` is dead, whatever TCP thinks of it.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar

import msgspec
from prometheus_client import Counter

from pequod.base.backoff import Backoff, spread
from pequod.kube.client import ALL, Client, Selection
from pequod.kube.errors import (
    ApiError,
    BadRequestError,
    BrokenAnswerError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    OverloadedError,
    Status,
    TimedOutError,
    api_error,
)
from pequod.kube.kinds import Kind
from pequod.kube.objects import MISFITS, version_number

STREAM = (40, 50)
"""Seconds after which the server ends a stream: one of these, so that streams drift apart."""
IDLE = 55.0
"""Seconds without a byte after which a stream is taken for dead."""
BRIEF = 1.0
"""Seconds that a stream lasts at least: those that do not are not asked for without a pause."""
LISTING_IDLE = 60.0
"""Seconds that a server may think before it begins to send a list."""
PATIENT_LISTS = 3
"""Streamed lists that may break before lists are paged instead."""
LISTING_LIMIT = 600.0
"""Seconds that a list may take."""
RELIST = 3600.0
"""Seconds after which the list is made anew: whatever was missed is found then at the latest."""
LONGEST_LINE = 16 * 2**20
_LISTED = "k8s.io/initial-events-end"

_streams = Counter("pequod_watch_streams_total", "Streams by how they ended.", ("resource", "end"))
_events = Counter("pequod_watch_events_total", "Events by kind.", ("resource", "type"))


@dataclass(frozen=True, slots=True)
class Began:
    """A new list follows: what it does not hold when it is complete is gone."""

    again: bool = False
    """Whether it takes the place of one that had begun already."""


@dataclass(frozen=True, slots=True)
class Put:
    """An object as it is now."""

    raw: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Removed:
    """An object that is gone, as it was last."""

    raw: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Complete:
    """The list that began is complete."""

    version: str = ""
    """The version up to which it knows everything."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was heard: the stream goes on by itself, but what is known grows old."""

    error: KubeError


@dataclass(frozen=True, slots=True)
class Garbled:
    """Something about an object that cannot even be named."""


Event = Began | Put | Removed | Complete | Failed | Garbled


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMeta = _BookmarkMeta()


_lines = msgspec.json.Decoder(_Line)
_bookmarks = msgspec.json.Decoder(_Bookmark)


class Watch:
    """Follows one selection of one kind."""

    _BACKOFF: ClassVar = Backoff(first=0.2, limit=30.0, spread=0.5)

    def __init__(
        self,
        client: Client,
        kind: Kind,
        selection: Selection = ALL,
        *,
        accept: tuple[str, str] = ("", ""),
        idle: float = IDLE,
        relist: float = RELIST,
    ) -> None:
        """Follow a kind; `accept` names the form of objects in a stream and in a list."""
        self._client = client
        self._kind = kind
        self._selection = selection
        self._accept, self._accept_list = accept
        self._idle = idle
        self._relist = spread(relist)
        self._listed = float("-inf")
        self._version = ""
        self._streaming_lists = True
        self._failed_lists = 0
        self._counters: dict[str, Counter] = {}
        self.heard = asyncio.get_running_loop().time()
        """When anything was last heard."""
        self.tried = self.heard
        """When the server was last asked or heard: a watch that does neither is stuck."""

    async def events(self) -> AsyncGenerator[Event, None]:
        """List, follow, resume; for as long as somebody listens."""
        self._version = ""
        failures = 0
        while True:
            self._note_try()
            attempt = self._once()
            asked, version = self.tried, self._version
            problem: KubeError | None = None
            try:
                async with aclosing(attempt) as events:
                    async for event in events:
                        yield event
            except KubeError as error:
                problem = error
            end = "complete" if problem is None else type(problem).__name__
            _streams.labels(self._kind.resource, end).inc()
            if problem is None and not version:
                # Whether the list was any good shows when it is followed.
                continue
            lasted = bool(version) and self._lasted(asked)
            progressed = lasted or self._went_on(problem, version)
            failures = 0 if progressed else failures + 1
            if problem is not None and not self._recovers(problem):
                yield Failed(problem)
            if not lasted or problem is not None:
                await asyncio.sleep(self._pause(problem, failures))

    def _once(self) -> AsyncGenerator[Event, None]:
        if self.tried - self._listed > self._relist:
            self._version = ""
        if self._version:
            seconds = random.randint(*STREAM)  # noqa: S311 -- no secret
            return self._follow({"resourceVersion": self._version}, seconds, self._idle)
        if self._streaming_lists:
            return self._stream_list()
        return self._paged_list()

    def _recovers(self, error: KubeError) -> bool:
        """Whether the next try goes another way that is expected to work."""
        if isinstance(error, GoneError):
            self._version = ""
            return True
        if isinstance(error, NotFoundError):
            # The kind itself is gone; should it come back, nothing of before counts.
            self._version = ""
            return False
        refused = isinstance(error, (BadRequestError, InvalidError))
        if self._version:
            if refused:
                self._version = ""
            return False
        self._failed_lists += isinstance(error, (TimedOutError, BrokenAnswerError))
        if self._streaming_lists and (refused or self._failed_lists >= PATIENT_LISTS):
            # A server that is too old, or something on the way that holds streams back.
            self._streaming_lists = False
            return refused
        return False

    def _went_on(self, problem: KubeError | None, version: str) -> bool:
        """Whether a stream from some version brought us beyond it."""
        gone = isinstance(problem, GoneError)
        return bool(version) and self._version != version and not gone

    def _pause(self, error: KubeError | None, failures: int) -> float:
        """Seconds before the next try; none the first time that a version is too old."""
        if isinstance(error, GoneError) and failures <= 1:
            return 0.0
        delay = self._BACKOFF.delay(failures)
        if isinstance(error, OverloadedError) and error.retry_after is not None:
            return max(delay, error.retry_after)
        return delay

    async def _stream_list(self) -> AsyncGenerator[Event, None]:
        """The list as a stream: consistent with every write before it, in constant memory."""
        yield Began()
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        seconds = int(LISTING_LIMIT)
        async with aclosing(self._follow(query, seconds, LISTING_IDLE)) as events:
            async for event in events:
                yield event
                if isinstance(event, Complete):
                    self._listed = self.heard
                    self._failed_lists = 0
                    return
        raise BrokenAnswerError(f"the list of {self._kind} ended before it was complete")

    async def _paged_list(self) -> AsyncGenerator[Event, None]:
        """The list page by page, for servers that cannot stream it."""
        yield Began()
        version = ""
        pages = self._client.pages(self._kind, self._selection, accept=self._accept_list)
        async for page in pages:
            self._note_heard()
            if page.anew:
                yield Began(again=True)
            version = page.metadata.resource_version
            for raw in page.items or ():
                yield Put(raw)
        yield Complete(version)
        self._version = version
        self._listed = self.heard

    async def _follow(
        self, query: dict[str, str], seconds: int, idle: float
    ) -> AsyncGenerator[Event, None]:
        query = query | {"allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        request = self._client.watch_request(
            self._kind, self._selection, query, accept=self._accept
        )
        async with self._client.transport.stream(request, idle=idle) as chunks:
            self._note_heard()
            async for line in _split(chunks):
                self._note_heard()
                event = self._event(line)
                if event is not None:
                    yield event

    def _event(self, line: bytes) -> Event | None:
        try:
            decoded = _lines.decode(line)
        except RecursionError:
            # Deeper than we can follow, and one object's problem only.
            return Garbled()
        except MISFITS as error:
            raise BrokenAnswerError(f"a watch of {self._kind} broke off: {error}") from error
        self._counted(decoded.type)
        if decoded.type == "ERROR":
            raise _refusal(bytes(decoded.object))
        metadata = self._metadata(decoded)
        listed = decoded.type == "BOOKMARK" and _LISTED in (metadata.annotations or {})
        if decoded.type == "BOOKMARK" and self._went_back(metadata.resource_version):
            raise GoneError(410, Status(message="the API server's versions went backwards"))
        if self._version or listed:
            # Before the list is complete, versions are those of its objects, in no order.
            self._version = metadata.resource_version or self._version
        if decoded.type == "BOOKMARK":
            return Complete(self._version) if listed else None
        return Removed(decoded.object) if decoded.type == "DELETED" else Put(decoded.object)

    def _counted(self, type_: str) -> None:
        counter = self._counters.get(type_)
        if counter is None:
            counter = self._counters[type_] = _events.labels(self._kind.resource, type_)
        counter.inc()

    def _metadata(self, line: _Line) -> _BookmarkMeta:
        try:
            return _bookmarks.decode(line.object).metadata
        except MISFITS:
            # Not even its metadata can be read: the cache decides what that means.
            return _BookmarkMeta()

    def _went_back(self, version: str) -> bool:
        """Whether the server is at an earlier version than it was: its store was restored."""
        before, now = version_number(self._version), version_number(version)
        return before is not None and now is not None and now < before

    def _lasted(self, asked: float) -> bool:
        """Whether there was a stream since then, and not only for a moment."""
        return self.heard > asked and asyncio.get_running_loop().time() - asked > BRIEF

    def _note_heard(self) -> None:
        self.heard = asyncio.get_running_loop().time()
        self.tried = self.heard

    def _note_try(self) -> None:
        self.tried = asyncio.get_running_loop().time()


def _refusal(body: bytes) -> ApiError:
    """The error that a stream ends with."""
    status = api_error(500, body).status
    return api_error(status.code or 500, body)


async def _split(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines, however they were cut into chunks; a last one without an end is not one."""
    rest = b""
    async for chunk in chunks:
        if b"\n" not in chunk:
            rest += chunk
            if len(rest) > LONGEST_LINE:
                raise BrokenAnswerError(f"a line of a watch is longer than {LONGEST_LINE} bytes")
            continue
        first, *others = chunk.split(b"\n")
        yield rest + first
        rest = others.pop()
        for line in others:
            yield line
