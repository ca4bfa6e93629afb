"""A registry, a server in front of it, and sources that may reach this machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

import evaluators
from doubles.registry import RegistryServer, running
from pequod.dev.programs import find_add_ons
from pequod.evaluator.registry import BOUNDS, Layer, Registry, RegistryAccess, Upload
from pequod.evaluator.worker import Bounds
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials
from pequod.sources.limits import Limits
from pequod.sources.oci.source import OciOptions, OciSource
from pequod.sources.store import Store

Blob = tuple[str, bytes] | tuple[str, bytes, dict[str, str]]
Publish = Callable[..., Awaitable[str]]
MakeSource = Callable[..., Awaitable[OciSource]]
LOCAL = OciOptions(rule=AddressRule(allow_local=True))


@pytest.fixture(scope="session", autouse=True)
def the_program_is_built() -> None:
    evaluators.version()


@pytest.fixture(scope="session")
def registry_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    command = asyncio.run(find_add_ons(lambda _: None)).command("registry")
    with running(command, tmp_path_factory.mktemp("registry")) as port:
        yield port


@pytest.fixture
async def server(registry_port: int) -> AsyncIterator[RegistryServer]:
    server = RegistryServer(registry_port)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def repository(server: RegistryServer) -> str:
    """A place in the registry that no other test has used."""
    return f"{server.host}/team/module-{uuid4().hex[:12]}"


@pytest.fixture
def trust(server: RegistryServer) -> Credentials:
    """Nothing but the authority of the server."""
    return Credentials(authority=server.authority.certificate.decode(), fingerprint="trust")


@pytest.fixture
async def make_registry() -> AsyncIterator[Callable[..., Awaitable[Registry]]]:
    async with AsyncExitStack() as ends:

        async def make(bounds: Bounds = BOUNDS) -> Registry:
            pool = await ends.enter_async_context(evaluators.pool(network=True, bounds=bounds))
            return Registry(pool)

        yield make


@pytest.fixture
async def registry(make_registry: Callable[..., Awaitable[Registry]]) -> Registry:
    return await make_registry()


@pytest.fixture
async def make_source(tmp_path: Path, registry: Registry) -> AsyncIterator[MakeSource]:
    async with AsyncExitStack() as ends:

        async def make(
            *,
            limits: Limits | None = None,
            options: OciOptions = LOCAL,
            client: Registry = registry,
        ) -> OciSource:
            store = Store(tmp_path / "store", limits=limits)
            await store.open()
            ends.callback(store.close)
            return OciSource(store, client, options)

        yield make


@pytest.fixture
async def source(make_source: MakeSource) -> OciSource:
    return await make_source()


@pytest.fixture
def publish(registry: Registry, registry_port: int, repository: str, tmp_path: Path) -> Publish:
    """Puts an artifact into the registry, past the server in front of it; yields its digest."""

    async def push(
        layers: Sequence[Blob],
        *,
        tag: str = "v1",
        config_type: str = "application/vnd.oci.empty.v1+json",
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        made = []
        for blob in layers:
            file = tmp_path / f"blob-{uuid4().hex}"
            file.write_bytes(blob[1])
            about = blob[2] if len(blob) == 3 else {}
            made.append(Layer(media_type=blob[0], file=str(file), annotations=about))
        upload = Upload(config_type=config_type, layers=made, annotations=annotations or {})
        where = f"127.0.0.1:{registry_port}/{repository.partition('/')[2]}:{tag}"
        return await registry.push(where, upload, RegistryAccess(plain_http=True))

    return push
