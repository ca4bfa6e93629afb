"""Who may pull, where from, and that nobody else learns how."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from aiohttp import web

from doubles.archives import files_of, targz_of
from doubles.registry import RegistryServer
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials, Login
from pequod.sources.errors import DeniedError, RefusedError, SourceError, UnavailableError
from pequod.sources.oci.source import OciOptions, OciSource

Publish = Callable[..., Awaitable[str]]
MakeSource = Callable[..., Awaitable[OciSource]]
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
FILES = {"a.cue": b"a: 1\n"}
SECRET = "s3cr3t-of-nobody"


@pytest.fixture
async def reference(publish: Publish, repository: str) -> str:
    await publish([(FLUX, targz_of(FILES))])
    return f"{repository}:v1"


@pytest.fixture
async def other(registry_port: int, server: RegistryServer) -> AsyncIterator[RegistryServer]:
    """Another server, which the same authority vouches for."""
    other = RegistryServer(registry_port, authority=server.authority)
    await other.start()
    yield other
    await other.stop()


async def test_a_private_registry_names_what_the_secret_needs(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    server.password = ("ada", SECRET)
    with pytest.raises(
        DeniedError, match=r"a Secret with username and password, or .*dockerconfig"
    ):
        await source.resolve(reference, credentials=trust)


async def test_the_right_password_is_accepted(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    server.password = ("ada", SECRET)
    login = Login(username="ada", password=SECRET)
    for credentials in (replace(trust, login=login), replace(trust, hosts={server.host: login})):
        found = await source.resolve(reference, credentials=credentials)
        assert files_of(found.tree) == FILES


async def test_a_token_is_accepted(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    server.token = SECRET

    async def want_a_token(request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == f"Bearer {SECRET}":
            return None
        challenge = {"WWW-Authenticate": f'Bearer realm="https://{server.host}/token"'}
        return web.Response(status=401, headers=challenge)

    server.behaviour = want_a_token
    found = await source.resolve(reference, credentials=replace(trust, login=Login(token=SECRET)))
    assert files_of(found.tree) == FILES


async def test_wrong_credentials_are_denied_and_not_repeated(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    server.password = ("ada", "right")
    wrong = replace(trust, login=Login(username="ada", password=SECRET))
    with pytest.raises(DeniedError, match="correct username and password") as caught:
        await source.resolve(reference, credentials=wrong)
    assert SECRET not in str(caught.value)


async def test_a_registry_that_repeats_a_secret_does_not_make_us_repeat_it(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    async def repeat(request: web.Request) -> web.Response:
        if "Authorization" not in request.headers:
            challenge = {"WWW-Authenticate": 'Basic realm="x"'}
            return web.Response(status=401, headers=challenge)
        error = {"errors": [{"code": "DENIED", "message": f"{SECRET} is wrong"}]}
        return web.json_response(error, status=403)

    server.behaviour = repeat
    login = replace(trust, login=Login(username="ada", password=SECRET))
    with pytest.raises(DeniedError) as caught:
        await source.resolve(reference, credentials=login)
    assert SECRET not in str(caught.value)


async def test_case_80_credentials_for_another_host_are_not_sent(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    server.password = ("ada", SECRET)
    elsewhere = {"ghcr.io": Login(username="ada", password=SECRET)}
    with pytest.raises(DeniedError, match="give a Secret"):
        await source.resolve(reference, credentials=replace(trust, hosts=elsewhere))
    assert {one.authorization for one in server.journal} == {""}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_case_79_a_redirect_takes_no_credentials_along(
    name: str,
    server: RegistryServer,
    other: RegistryServer,
    source: OciSource,
    trust: Credentials,
    reference: str,
) -> None:
    server.password = ("ada", SECRET)

    async def redirect(request: web.Request) -> web.Response | None:
        if "/blobs/" not in request.path or "Authorization" not in request.headers:
            return None
        raise web.HTTPTemporaryRedirect(f"https://{name}:{other.port}{request.path}")

    server.behaviour = redirect
    login = replace(trust, login=Login(username="ada", password=SECRET))
    found = await source.resolve(reference, credentials=login)
    assert files_of(found.tree) == FILES
    assert [one.authorization for one in other.journal] == [""]


async def test_case_79_a_redirect_away_from_tls_is_refused(
    registry_port: int,
    server: RegistryServer,
    source: OciSource,
    trust: Credentials,
    reference: str,
) -> None:
    async def redirect(request: web.Request) -> web.Response | None:
        if "/blobs/" not in request.path:
            return None
        raise web.HTTPTemporaryRedirect(f"http://127.0.0.1:{registry_port}{request.path}")

    server.behaviour = redirect
    with pytest.raises(DeniedError, match="without TLS"):
        await source.resolve(reference, credentials=trust)


async def test_case_79_a_password_is_never_sent_to_a_token_service_without_tls(
    registry_port: int,
    server: RegistryServer,
    source: OciSource,
    trust: Credentials,
    reference: str,
) -> None:
    plain = RegistryServer(registry_port, tls=False)
    await plain.start()

    async def elsewhere(_: web.Request) -> web.Response:
        challenge = {"WWW-Authenticate": f'Bearer realm="http://{plain.host}/token",service="x"'}
        return web.Response(status=401, headers=challenge)

    server.behaviour = elsewhere
    login = replace(trust, login=Login(username="ada", password=SECRET))
    try:
        with pytest.raises(SourceError):
            await source.resolve(reference, credentials=login)
        assert plain.journal == []
    finally:
        await plain.stop()


async def test_redirects_without_end_are_left(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    async def again(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(str(request.url))

    server.behaviour = again
    with pytest.raises(SourceError):
        await source.resolve(reference, credentials=trust)
    assert len(server.journal) < 20


async def test_a_server_that_nobody_vouches_for_is_not_believed(
    server: RegistryServer, source: OciSource, reference: str
) -> None:
    with pytest.raises(DeniedError, match=r"ca\.crt in the Secret"):
        await source.resolve(reference)
    wrong = RegistryServer(0).authority.certificate.decode()
    with pytest.raises(DeniedError, match=r"ca\.crt in the Secret"):
        await source.resolve(reference, credentials=Credentials(authority=wrong))
    with pytest.raises(DeniedError, match=r"ca\.crt in the Secret"):
        await source.resolve(reference, credentials=Credentials(authority="no PEM"))
    assert server.journal == []


async def test_credentials_are_not_sent_without_tls(
    registry_port: int, make_source: MakeSource
) -> None:
    host = f"127.0.0.1:{registry_port}"
    options = OciOptions(rule=AddressRule(allow_local=True), plain_http=frozenset({host}))
    source = await make_source(options=options)
    login = Credentials(login=Login(username="ada", password=SECRET))
    with pytest.raises(DeniedError, match="not sent without TLS"):
        await source.resolve(f"{host}/a:v1", credentials=login)


async def test_a_registry_without_tls_is_not_spoken_to_unasked(
    registry_port: int, source: OciSource
) -> None:
    with pytest.raises(UnavailableError):
        await source.resolve(f"127.0.0.1:{registry_port}/a:v1")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "127.1.2.3", "[::ffff:127.0.0.1]"])
async def test_case_81_this_machine_is_not_reached_by_others(
    name: str, server: RegistryServer, make_source: MakeSource, trust: Credentials
) -> None:
    source = await make_source(options=OciOptions())
    with pytest.raises(RefusedError, match="not an address that a source may have"):
        await source.resolve(f"{name}:{server.port}/a:v1", credentials=trust)
    assert server.journal == []


@pytest.mark.parametrize("name", ["169.254.169.254", "0.0.0.0", "[fe80::1]", "100.100.100.200"])
async def test_case_81_metadata_services_are_never_reached(name: str, source: OciSource) -> None:
    with pytest.raises(RefusedError, match="a server of its own"):
        await source.resolve(f"{name}:80/a:v1")


async def test_case_81_a_redirect_to_a_metadata_service_is_refused(
    server: RegistryServer, source: OciSource, trust: Credentials, reference: str
) -> None:
    async def redirect(request: web.Request) -> web.Response | None:
        if "/blobs/" not in request.path:
            return None
        raise web.HTTPTemporaryRedirect("https://169.254.169.254/latest/meta-data")

    server.behaviour = redirect
    with pytest.raises(RefusedError, match=r"169\.254\.169\.254 is not an address"):
        await source.resolve(reference, credentials=trust)
