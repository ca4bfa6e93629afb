"""Who may read a repository, and that nobody else learns how."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from doubles.gitserver import GitServer
from pequod.sources.credentials import Credentials, Login
from pequod.sources.errors import DeniedError, RefusedError
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.source import GitSource

Refer = Callable[..., GitReference]
SECRET = "s3cr3t-t0ken-of-nobody"


@pytest.fixture
def login(server: GitServer) -> Callable[[Login], Credentials]:
    authority = server.authority.certificate.decode()
    return lambda login: Credentials(login=login, authority=authority, fingerprint=repr(login))


async def test_without_credentials_a_private_repository_is_denied(
    server: GitServer, source: GitSource, trust: Credentials, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    server.password = ("x-access-token", SECRET)
    with pytest.raises(DeniedError, match="does not accept the credentials"):
        await source.resolve(reference("ref=main"), credentials=trust)


async def test_wrong_credentials_are_denied_and_not_repeated(
    server: GitServer,
    source: GitSource,
    login: Callable[[Login], Credentials],
    reference: Refer,
) -> None:
    server.repository().commit({"a": "1"})
    server.password = ("ada", "right")
    wrong = login(Login(username="ada", password=SECRET))
    with pytest.raises(DeniedError) as caught:
        await source.resolve(reference("ref=main"), credentials=wrong)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "user"),
    [
        (Login(token=SECRET), "x-access-token"),
        (Login(username="bot", token=SECRET), "bot"),
        (Login(username="ada", password=SECRET), "ada"),
    ],
)
async def test_credentials_never_are_on_a_command_line(
    server: GitServer,
    source: GitSource,
    login: Callable[[Login], Credentials],
    reference: Refer,
    given: Login,
    user: str,
) -> None:
    server.repository().commit({"a": "1"})
    server.password = (user, SECRET)
    hidden = (SECRET, b64encode(f"{user}:{SECRET}".encode()).decode())
    seen: list[str] = []

    async def look(_request: web.Request) -> None:
        seen.extend(_command_lines())

    server.behaviour = look
    artifact = await source.resolve(reference("ref=main"), credentials=login(given))
    assert (artifact.tree / "a").read_text() == "1"
    assert any("ls-remote" in line for line in seen)
    assert not [line for line in seen for one in hidden if one in line]


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


async def test_case_79_a_redirect_is_not_followed_and_gets_no_credentials(
    server: GitServer,
    source: GitSource,
    login: Callable[[Login], Credentials],
    reference: Refer,
) -> None:
    """Another port is another origin; the sink is the same server under its number."""
    server.repository().commit({"a": "1"})

    async def redirect(request: web.Request) -> web.Response | None:
        if request.path.startswith("/app.git"):
            target = f"https://127.0.0.1:{server.port}/sink{request.path_qs}"
            return web.Response(status=302, headers={"Location": target})
        return None

    server.behaviour = redirect
    with pytest.raises(RefusedError, match="redirects"):
        await source.resolve(reference("ref=main"), credentials=login(Login(token=SECRET)))
    assert not [asked for asked in server.journal if asked.path.startswith("/sink")]


async def test_case_79_credentials_are_not_sent_over_http(
    source: GitSource, login: Callable[[Login], Credentials]
) -> None:
    wanted = parse("http://git.test:1/app.git", allow_http=True)
    with pytest.raises(DeniedError, match="not sent over http"):
        await source.resolve(wanted, credentials=login(Login(token=SECRET)))


async def test_case_80_credentials_of_another_host_stay_at_home(
    server: GitServer, source: GitSource, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    credentials = Credentials(
        hosts={"elsewhere.test": Login(token=SECRET)},
        authority=server.authority.certificate.decode(),
        fingerprint="hosts",
    )
    await source.resolve(reference("ref=main"), credentials=credentials)
    assert {asked.authorization for asked in server.journal} == {""}


async def test_a_server_is_verified_with_the_given_authority_and_no_other(
    server: GitServer, source: GitSource, reference: Refer
) -> None:
    server.repository().commit({"a": "1"})
    with pytest.raises(DeniedError, match="certificate cannot be verified"):
        await source.resolve(reference("ref=main"))
    assert not server.journal


async def test_what_one_may_read_another_may_not_read_from_the_mirror(
    server: GitServer,
    source: GitSource,
    login: Callable[[Login], Credentials],
    trust: Credentials,
    reference: Refer,
) -> None:
    commit = server.repository().commit({"a": "1"})
    server.password = ("x-access-token", SECRET)
    await source.resolve(reference("ref=main"), credentials=login(Login(token=SECRET)))
    for ref in ("main", commit):
        with pytest.raises(DeniedError):
            await source.resolve(reference(f"ref={ref}"), credentials=trust)


async def test_nothing_private_stays_on_disk(
    server: GitServer,
    source: GitSource,
    login: Callable[[Login], Credentials],
    reference: Refer,
    tmp_path: Path,
) -> None:
    server.repository().commit({"a": "1"})
    server.password = ("x-access-token", SECRET)
    await source.resolve(reference("ref=main"), credentials=login(Login(token=SECRET)))
    assert not list((tmp_path / "git" / "0" / "private").iterdir())
    files = [one for one in (tmp_path / "git").rglob("*") if one.is_file()]
    assert not [one for one in files if SECRET.encode() in one.read_bytes()]
