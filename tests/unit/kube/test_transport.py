"""The connection itself, against servers that are not what one would wish for."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from listening import serving
from pequod.kube import auth
from pequod.kube.auth import Access, ClientCertificate, Endpoint, Files, Fixed, Identity
from pequod.kube.client import Client
from pequod.kube.errors import (
    ApiError,
    BrokenAnswerError,
    CredentialsError,
    FencedError,
    UnauthorizedError,
    UnreachableError,
)
from pequod.kube.kinds import CONFIG_MAPS
from pequod.kube.transport import Fence, Limits, Request, Transport
from waiting import eventually

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(
    page: Page,
    credentials: auth.Credentials | None = None,
    *,
    limits: Limits | None = None,
    fence: Fence | None = None,
) -> AsyncIterator[Transport]:
    async with serving(page) as port:
        endpoint = Endpoint(server=f"http://127.0.0.1:{port}")
        access = Access(endpoint=endpoint, credentials=credentials or Fixed())
        transport = Transport(access, limits=limits, fence=fence)
        try:
            yield transport
        finally:
            await transport.close()


GET = Request(method="GET", path="/x?a=b%2Fc", verb="get")


async def test_an_answer_that_would_fill_the_memory_is_cut_off() -> None:
    async def page(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 100_000)

    async with served(page, limits=Limits(largest=50_000)) as transport:
        with pytest.raises(BrokenAnswerError, match="larger than"):
            await transport.send(GET)


async def test_nothing_is_unpacked() -> None:
    asked: list[str | None] = []

    async def page(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Accept-Encoding"))
        packed = gzip.compress(b"x" * 1_000_000)
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with served(page, limits=Limits(largest=50_000)) as transport:
        assert len(await transport.send(GET)) < 50_000
    assert asked == ["identity"]


async def test_paths_and_queries_arrive_as_they_are() -> None:
    seen: list[str] = []

    async def page(request: web.Request) -> web.Response:
        seen.append(request.raw_path)
        return web.Response(body=b"{}")

    async with served(page) as transport:
        await transport.send(GET)
        await transport.send(Request(method="GET", path="/a:b/c%20d"))
    assert seen == ["/x?a=b%2Fc", "/a:b/c%20d"]


async def test_case_79_a_redirect_is_not_followed() -> None:
    visited: list[str] = []

    async def page(request: web.Request) -> web.Response:
        visited.append(request.path)
        return web.Response(status=302, headers={"Location": "/attacker"})

    identity = Identity(authorization="Bearer secret")
    async with served(page, Fixed(identity)) as transport:
        with pytest.raises(ApiError):
            await transport.send(GET)
    assert visited == ["/x"]


async def test_an_empty_answer_to_a_list_is_not_an_empty_list() -> None:
    async def page(_request: web.Request) -> web.Response:
        return web.json_response({})

    async with served(page) as transport:
        with pytest.raises(BrokenAnswerError, match="is no list"):
            await Client(transport).list(CONFIG_MAPS)


async def test_a_closed_fence_stops_writes_and_lets_reads_through() -> None:
    async def page(_request: web.Request) -> web.Response:
        return web.json_response({})

    def closed() -> None:
        raise FencedError("another leads")

    async with served(page, fence=closed) as transport:
        await transport.send(GET)
        with pytest.raises(FencedError):
            await transport.send(Request(method="PATCH", path="/x", body=b"{}"))


async def test_a_closed_transport_stays_closed() -> None:
    async def page(_request: web.Request) -> web.Response:
        return web.json_response({})

    async with served(page) as transport:
        await transport.send(GET)
        await transport.close()
        with pytest.raises(UnreachableError, match="has been closed"):
            await transport.send(GET)


async def test_refused_credentials_are_asked_for_again_once(tmp_path: Path) -> None:
    shown: list[str | None] = []
    token = tmp_path / "token"

    async def page(request: web.Request) -> web.Response:
        shown.append(request.headers.get("Authorization"))
        return web.json_response({}, status=200 if shown[-1] == "Bearer new" else 401)

    token.write_text("old")
    async with served(page, Files(token=token)) as transport:
        with pytest.raises(UnauthorizedError):
            await transport.send(GET)
        token.write_text("new")
        await transport.send(GET)
    assert shown == ["Bearer old", "Bearer old", "Bearer new"]


async def test_credentials_that_cannot_be_read_any_more_are_used_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REREAD", 0.0)
    token = tmp_path / "token"
    token.write_text("first")
    files = Files(token=token)
    assert (await files.current()).authorization == "Bearer first"
    token.unlink()
    with capture_logs():
        for _ in range(3):
            assert (await files.current()).authorization == "Bearer first"
            await asyncio.sleep(0.01)
        files.rejected()
        with pytest.raises(CredentialsError):
            await files.current()


@pytest.mark.parametrize("content", [b"", b"no certificate", "ümlaut".encode()])
def test_an_authority_without_a_certificate_trusts_nobody(content: bytes) -> None:
    with pytest.raises(CredentialsError, match="holds no certificate"):
        Endpoint(server="https://here", authority=content).tls(None)


async def test_a_new_certificate_means_a_new_session_and_the_old_one_is_closed_in_its_time() -> (
    None
):
    async def page(_request: web.Request) -> web.Response:
        return web.json_response({})

    class Rotating:
        """Another certificate whenever it is asked."""

        def __init__(self) -> None:
            self.number = 0

        async def current(self) -> Identity:
            self.number += 1
            certificate = ClientCertificate(b"", str(self.number).encode())
            return Identity(certificate=certificate)

        def rejected(self) -> None:
            raise AssertionError("nothing was refused")

    async with served(page, Rotating(), limits=Limits(timeout=0.2)) as transport:
        await transport.send(GET)
        first = transport._session
        assert first is not None
        await transport.send(GET)
        assert transport._session is not first
        assert not first.closed
        await eventually(lambda: first.closed, "the first session is closed")
