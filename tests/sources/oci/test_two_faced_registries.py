"""Registries that say one thing and do another, or nothing at all."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from doubles.archives import files_of, targz_of
from doubles.registry import RegistryServer
from pequod.evaluator.registry import Registry
from pequod.evaluator.worker import Bounds
from pequod.sources.credentials import Credentials
from pequod.sources.errors import RefusedError, UnavailableError
from pequod.sources.oci.source import OciSource

Publish = Callable[..., Awaitable[str]]
MakeSource = Callable[..., Awaitable[OciSource]]
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"


async def test_case_83_a_tag_that_moves_between_resolving_and_pulling_changes_nothing(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    signed = await publish([(FLUX, targz_of({"a": b"signed"}))])
    moved = False

    async def move(request: web.Request) -> web.Response | None:
        nonlocal moved
        if not request.path.endswith("/manifests/v1") or moved:
            return None
        moved = True
        answer = await server.forward(request)
        await publish([(FLUX, targz_of({"a": b"evil"}))])
        return answer

    server.behaviour = move
    found = await source.resolve(f"{repository}:v1", credentials=trust)
    assert moved
    assert files_of(found.tree) == {"a": b"signed"}
    assert found.revision == f"v1@{signed}"


async def test_case_83_another_manifest_than_the_one_that_was_asked_for_is_refused(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
    tmp_path: Path,
) -> None:
    signed = await publish([(FLUX, targz_of({"a": b"signed"}))])
    evil = await publish([(FLUX, targz_of({"a": b"evil"}))], tag="evil")

    async def swap(request: web.Request) -> web.Response | None:
        if not request.path.endswith(f"/manifests/{signed}") or request.method != "GET":
            return None
        answer = await server.forward(request.clone(rel_url=request.path.replace(signed, evil)))
        answer.headers["Docker-Content-Digest"] = signed
        return answer

    server.behaviour = swap
    with pytest.raises(RefusedError, match="mismatch"):
        await source.resolve(f"{repository}:v1", credentials=trust)
    assert list((tmp_path / "store" / "trees").iterdir()) == []


async def test_case_83_a_layer_that_is_not_what_its_digest_says_is_refused(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
    tmp_path: Path,
) -> None:
    good, evil = targz_of({"a": b"signed"}), targz_of({"a": b"evil!!"})
    assert len(good) == len(evil)
    await publish([(FLUX, good)])

    async def swap(request: web.Request) -> web.Response | None:
        return web.Response(body=evil) if "/blobs/" in request.path else None

    server.behaviour = swap
    with pytest.raises(RefusedError, match="not what its digest says"):
        await source.resolve(f"{repository}:v1", credentials=trust)
    assert list((tmp_path / "store" / "trees").iterdir()) == []


@pytest.mark.parametrize("size", [10, 10_000])
async def test_case_83_a_layer_of_another_size_is_not_used(
    size: int,
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    await publish([(FLUX, targz_of({"a": b"signed"}))])

    async def swap(request: web.Request) -> web.Response | None:
        return web.Response(body=b"x" * size) if "/blobs/" in request.path else None

    server.behaviour = swap
    with pytest.raises((RefusedError, UnavailableError)):
        await source.resolve(f"{repository}:v1", credentials=trust)


async def test_case_77_a_registry_that_never_answers_is_left_in_time(
    server: RegistryServer,
    make_registry: Callable[..., Awaitable[Registry]],
    make_source: MakeSource,
    repository: str,
    trust: Credentials,
) -> None:
    source = await make_source(client=await make_registry(Bounds(seconds=3.0)))
    server.behaviour = server.stall
    with pytest.raises(UnavailableError):
        await source.resolve(f"{repository}:v1", credentials=trust)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_case_77_a_registry_in_trouble_is_asked_again_later(
    status: int,
    server: RegistryServer,
    source: OciSource,
    repository: str,
    trust: Credentials,
) -> None:
    async def fail(_: web.Request) -> web.Response:
        return web.Response(status=status)

    server.behaviour = fail
    with pytest.raises(UnavailableError) as caught:
        await source.resolve(f"{repository}:v1", credentials=trust)
    assert caught.value.transient


async def test_case_77_a_layer_that_breaks_off_is_asked_for_again_later(
    server: RegistryServer,
    source: OciSource,
    publish: Publish,
    repository: str,
    trust: Credentials,
) -> None:
    content = targz_of({"a": b"signed"})
    await publish([(FLUX, content)])

    async def break_off(request: web.Request) -> web.StreamResponse | None:
        if "/blobs/" not in request.path:
            return None
        answer = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await answer.prepare(request)
        await answer.write(content[:20])
        assert request.transport is not None
        request.transport.abort()
        return answer

    server.behaviour = break_off
    with pytest.raises(UnavailableError):
        await source.resolve(f"{repository}:v1", credentials=trust)


async def test_nobody_is_there(source: OciSource) -> None:
    with pytest.raises(UnavailableError, match="see whether the registry is up"):
        await source.resolve("127.0.0.1:1/a:v1")
