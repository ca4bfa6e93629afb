"""The connection to one API server: pooled, bounded, timed, counted and fenced.

Requests go through `send`, streams through `stream`. Not more than `Limits.in_flight` requests run
at a time; when the server asks for patience (429), every request waits. A write is checked against
the fence at the last moment before its bytes leave.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from prometheus_client import Counter, Gauge, Histogram
from yarl import URL

from pequod.base.backoff import Backoff
from pequod.base.tasks import Background
from pequod.base.telemetry import span
from pequod.kube.auth import Access, Identity
from pequod.kube.errors import (
    BrokenAnswerError,
    NoAnswerError,
    OverloadedError,
    TimedOutError,
    UnauthorizedError,
    UnreachableError,
    UntrustedServerError,
    api_error,
)

_USER_AGENT = "pequod"
_READ_BUFFER = 2**18
_READS = frozenset({"GET", "HEAD"})
_LATELY = 16
"""Requests that count when it is asked how long one takes."""
_SLOW = 1.0
"""Seconds after which it does not matter how long one took: it is one among others."""
_PAST = 30.0
"""Seconds after which it does not matter any more how long requests took."""

_requests = Counter(
    "pequod_api_requests_total",
    "Requests to API servers.",
    ("cluster", "verb", "resource", "code"),
)
_durations = Histogram(
    "pequod_api_request_duration_seconds",
    "How long API servers took to answer, without waiting on our side.",
    ("cluster", "verb"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_in_flight = Gauge("pequod_api_requests_in_flight", "Requests without an answer.", ("cluster",))
_throttled = Counter(
    "pequod_api_throttled_total", "Answers that asked for fewer requests.", ("cluster",)
)


Fence = Callable[[], None]
"""Raises FencedError when nothing may be written any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of an API server one of us takes."""

    in_flight: int = 32
    timeout: float = 30.0
    """Seconds for one request from its first byte to the last of the answer."""
    connect: float = 10.0
    patience: float = 60.0
    """Seconds after which a request that the server keeps putting off is given up."""
    largest: int = 256 * 2**20
    """Bytes after which an answer is not worth our memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, ready to be sent."""

    method: str
    path: str
    """Path and query, encoded."""
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    verb: str = ""
    """What metrics call it: get, list, apply …"""
    resource: str = ""

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method not in _READS


class Connector(aiohttp.TCPConnector):
    """Connections that can all be ended at once.

    The fence is looked at once more when a connection is there: making one may have taken long.
    """

    fence: Fence | None = None

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 -- aiohttp's own options
        super().__init__(**options)
        self._made: WeakSet[asyncio.Transport] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 -- aiohttp's own signature
    ) -> Connection:
        """A connection for a request that may still be made."""
        connection = await super().connect(req, traces, timeout)
        if connection.transport is not None:
            self._made.add(connection.transport)
        if self.fence is not None and req.method not in _READS:
            try:
                self.fence()
            except BaseException:
                connection.release()
                raise
        return connection

    async def abort(self) -> None:
        """End every connection that was ever made, those that bid a long farewell included."""
        for transport in tuple(self._made):
            transport.abort()
        # What is aborted is closed by the loop, one turn for TLS and one for the socket below.
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def _never_twice(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a write once: aiohttp by itself repeats a PUT or a DELETE that was not answered."""
    try:
        return await send(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method in _READS:
            raise
        raise aiohttp.ClientPayloadError(str(error)) from error


class Transport:
    """Everything that we share of one API server."""

    def __init__(
        self,
        access: Access,
        *,
        name: str = "own",
        limits: Limits | None = None,
        fence: Fence | None = None,
        resolver: aiohttp.abc.AbstractResolver | None = None,
    ) -> None:
        self.access = access
        self.name = name
        self.limits = limits or Limits()
        self._fence = fence
        self._resolver = resolver
        self._slots = asyncio.Semaphore(self.limits.in_flight)
        self._session: aiohttp.ClientSession | None = None
        self._shown: Identity | None = None
        self._background = Background()
        self._changing = asyncio.Lock()
        self._closed = False
        self._resume_at = 0.0
        self._backoff = Backoff(first=0.25, limit=10.0)
        self._base = access.endpoint.server.rstrip("/")
        self._server = URL(self._base)
        self._times = aiohttp.ClientTimeout(
            total=self.limits.timeout, sock_connect=self.limits.connect
        )
        self._flying = _in_flight.labels(name)
        self._counters: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._takes = 0.0
        self._taken_at = 0.0

    async def send(self, request: Request) -> bytes:
        """Send a request and return the answer's body; everything but success is an error."""
        clock = asyncio.get_running_loop().time
        began = clock()
        with span(request.verb or request.method, resource=request.resource):
            answer = await self._until_taken(request)
        now, known = clock(), self.takes
        self._takes = known + (min(now - began, _SLOW) - known) / _LATELY
        self._taken_at = now
        return answer

    @property
    def takes(self) -> float:
        """Seconds that requests have taken lately, with their wait for a slot."""
        now = asyncio.get_running_loop().time()
        return self._takes if now - self._taken_at < _PAST else 0.0

    async def _until_taken(self, request: Request) -> bytes:
        """Send a request again for as long as the server asks for patience, within reason."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.limits.patience
        refused = 0
        while True:
            try:
                async with self._slots:
                    if (wait := self._resume_at - clock()) > 0:
                        await asyncio.sleep(wait)
                    return await self._authenticated(request)
            except OverloadedError as error:
                refused += 1
                _throttled.labels(self.name).inc()
                after = error.retry_after
                delay = after if after is not None else self._backoff.delay(refused)
                resume_at = clock() + delay
                if resume_at > deadline:
                    raise
                self._resume_at = max(self._resume_at, resume_at)
                # A little later than the others: not everybody at the same moment.
                await asyncio.sleep(delay + self._backoff.delay(1))

    async def _authenticated(self, request: Request) -> bytes:
        """Send a request; credentials that were refused get a second chance to be up to date."""
        credentials = self.access.credentials
        shown = await credentials.current()
        try:
            return await self._once(request, shown)
        except UnauthorizedError:
            # They may have been renewed while the request was on its way.
            if (now := await credentials.current()) == shown:
                credentials.rejected()
                now = await credentials.current()
            if now == shown:
                raise
            return await self._once(request, now)

    async def _once(self, request: Request, identity: Identity) -> bytes:
        session = await self._session_for(identity)
        if self._fence is not None and request.writes:
            self._fence()
        started = time.monotonic()
        code = 0
        self._flying.inc()
        try:
            async with self._opened(session, request, identity, self._times) as answer:
                body = await _whole(answer, self.limits.largest)
                code = answer.status
        except _TROUBLE as error:
            raise _explained(self._place(request), error) from error
        finally:
            self._flying.dec()
            self._count(request, code, time.monotonic() - started)
        if code >= 300:
            raise api_error(code, body, retry_after=answer.headers.get("Retry-After"))
        return body

    def _count(self, request: Request, code: int, took: float) -> None:
        """Count a request; the counters are remembered, since finding them costs more."""
        name = (request.verb, request.resource, code)
        counters = self._counters.get(name)
        if counters is None:
            counters = self._counters[name] = (
                _requests.labels(self.name, request.verb, request.resource, str(code or "none")),
                _durations.labels(self.name, request.verb),
            )
        counters[0].inc()
        if code:
            counters[1].observe(took)

    def _place(self, request: Request) -> str:
        return f"{request.method} {self._base}{request.path.partition('?')[0]}"

    @asynccontextmanager
    async def stream(self, request: Request, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer that goes on; ends with an error after `idle` seconds without a byte."""
        connect = self.limits.connect
        timeout = aiohttp.ClientTimeout(
            total=None, connect=connect, sock_connect=connect, sock_read=idle
        )
        identity = await self.access.credentials.current()
        session = await self._session_for(identity)
        try:
            async with self._opened(session, request, identity, timeout) as answer:
                self._count(request, answer.status, 0.0)
                await self._require_success(answer)
                try:
                    yield answer.content.iter_any()
                finally:
                    # Nothing of a stream that is left is worth a farewell.
                    connection = answer.connection
                    if connection is not None and connection.transport is not None:
                        connection.transport.abort()
        except _TROUBLE as error:
            raise _explained(self._place(request), error) from error

    async def _require_success(self, answer: aiohttp.ClientResponse) -> None:
        if answer.status == 401:
            self.access.credentials.rejected()
        if answer.status >= 300:
            body = await _whole(answer, self.limits.largest)
            retry_after = answer.headers.get("Retry-After")
            raise api_error(answer.status, body, retry_after=retry_after)

    def _opened(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        identity: Identity,
        limits: aiohttp.ClientTimeout,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = CIMultiDict(request.headers)
        if identity.authorization is not None:
            headers["Authorization"] = identity.authorization
        path, _, query = request.path.partition("?")
        return session.request(
            request.method,
            URL.build(
                scheme=self._server.scheme,
                host=self._server.raw_host or "",
                port=self._server.port,
                path=f"{self._server.raw_path.rstrip('/')}{path}",
                query_string=query,
                encoded=True,
            ),
            data=request.body,
            headers=headers,
            timeout=limits,
            # Credentials are for the server that we were told of, not for one that it names.
            allow_redirects=False,
            proxy=self.access.endpoint.proxy,
            server_hostname=self.access.endpoint.server_name,
        )

    async def _session_for(self, identity: Identity) -> aiohttp.ClientSession:
        """The session of an identity; another certificate means another one."""
        if self._session is not None and self._shows(identity):
            return self._session
        async with self._changing:
            if self._closed:
                raise UnreachableError(f"the connection to {self._base} has been closed")
            if self._session is None or not self._shows(identity):
                before, self._session = self._session, await self._new_session(identity)
                self._shown = identity
                if before is not None:
                    self._background.start(self._retire(before), name="retire connections")
            return self._session

    def _shows(self, identity: Identity) -> bool:
        return self._shown is identity or (
            self._shown is not None and self._shown.certificate == identity.certificate
        )

    async def _new_session(self, identity: Identity) -> aiohttp.ClientSession:
        endpoint = self.access.endpoint
        tls: ssl.SSLContext | bool = True
        if endpoint.server.lower().startswith("https:"):
            # Reading the system's authorities takes long enough to be noticed.
            tls = await asyncio.to_thread(endpoint.tls, identity.certificate)
        connector = Connector(
            ssl=tls, limit=0, keepalive_timeout=75.0, resolver=self._resolver, ttl_dns_cache=30
        )
        connector.fence = self._fence
        return aiohttp.ClientSession(
            connector=connector,
            # Unpacking costs more than loopback and data centres save, and has no limit.
            headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"},
            read_bufsize=_READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            middlewares=(_never_twice,),
        )

    async def _retire(self, session: aiohttp.ClientSession) -> None:
        """Close a session once the requests that use it have had their time."""
        try:
            await asyncio.sleep(self.limits.timeout)
        finally:
            await _ended(session)

    async def close(self) -> None:
        """End every connection; none is made any more."""
        self._closed = True
        await self._background.close()
        if self._session is not None:
            await _ended(self._session)
            self._session = None


async def _ended(session: aiohttp.ClientSession) -> None:
    connector = session.connector
    await session.close()
    if isinstance(connector, Connector):
        await connector.abort()


_TROUBLE = (aiohttp.ClientError, OSError, TimeoutError, UnicodeError)


def _explained(what: str, error: Exception) -> NoAnswerError:
    """What went wrong on the way, in our own terms."""
    match error:
        case TimeoutError():
            return TimedOutError(f"{what}: no answer in time")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return UntrustedServerError(f"{what}: {_tls_problem(error)}")
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError():
            return UnreachableError(f"{what}: {error.strerror or error}")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return BrokenAnswerError(f"{what}: the connection ended early")
        case UnicodeError():
            return UnreachableError(f"{what}: that is no name of a host")
        case _:
            return NoAnswerError(f"{what}: {type(error).__name__}")


async def _whole(answer: aiohttp.ClientResponse, largest: int) -> bytes:
    """The body of an answer, as long as it is not one that would fill our memory."""
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > largest:
            raise BrokenAnswerError(f"the answer is larger than {largest // 2**20} MiB")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _tls_problem(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    return str(getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or cause)
