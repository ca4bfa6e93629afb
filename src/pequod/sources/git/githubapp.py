"""Tokens of GitHub Apps: a key that never leaves us is exchanged for one that soon ends.

The only place here that speaks HTTP itself; the token goes to the host of the app and no other.
"""

import ssl
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pequod.base.flights import Flights
from pequod.kube.addresses import AddressRefusedError, AddressRule, CheckedResolver
from pequod.sources.credentials import GitHubApp
from pequod.sources.errors import DeniedError, SourceError, UnavailableError
from pequod.sources.git.remote import Remote

_PUBLIC = "api.github.com"
_EARLY = timedelta(minutes=5)
_SKEW = timedelta(seconds=60)
_LIFETIME = timedelta(minutes=9)
_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
_LARGEST = 2**16


_Key = tuple[GitHubApp, str | None]


class _Token(msgspec.Struct, frozen=True):
    token: str
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)]


def _now() -> datetime:
    return datetime.now(UTC)


class AppTokens:
    """Installation tokens, each until shortly before its end."""

    def __init__(
        self,
        rule: AddressRule,
        *,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._rule = rule
        self._resolver = resolver
        self._clock = clock
        self._known: dict[_Key, _Token] = {}
        self._flights: Flights[_Token] = Flights()

    async def token(self, app: GitHubApp, remote: Remote, authority: str | None = None) -> str:
        """What git presents to the forge that the app belongs to; that is verified as git does."""
        if remote.scheme != "https" or remote.authority != _forge(app):
            raise _denied(
                app,
                f"the app belongs to {_forge(app)}, not to {remote.origin}",
                "use a repository there, or another Secret",
            )
        key = (app, authority)
        known = self._known.get(key)
        if known is None or known.expires_at - _EARLY <= self._clock():
            known = await self._flights.share(key, lambda: self._exchange(key))
        return known.token

    async def _exchange(self, key: _Key) -> _Token:
        app, authority = key
        connector = self._connector(app, authority)
        status, body = await _post(connector, app, _signed(app, self._clock()))
        if status != HTTPStatus.CREATED:
            raise _failure(app, status)
        try:
            fresh = msgspec.json.decode(body, type=_Token)
        except msgspec.MsgspecError:
            raise _unavailable(app, "the answer holds no token") from None
        now = self._clock()
        alive = {one: token for one, token in self._known.items() if token.expires_at > now}
        self._known = {**alive, key: fresh}
        return fresh

    def _connector(self, app: GitHubApp, authority: str | None) -> aiohttp.TCPConnector:
        with suppress(ValueError):
            # A number is not looked up, so the resolver would never see it.
            if self._rule.refuse(ip_address(urlsplit(app.api).hostname or "")) is not None:
                raise _refused(app)
        try:
            context = ssl.create_default_context(cadata=authority)
        except (ssl.SSLError, TypeError, ValueError):
            raise _denied(app, "ca.crt is not a certificate", "correct the Secret") from None
        resolver = CheckedResolver(self._rule, self._resolver)
        return aiohttp.TCPConnector(resolver=resolver, ssl=context)


async def _post(connector: aiohttp.TCPConnector, app: GitHubApp, signed: str) -> tuple[int, bytes]:
    headers = {
        "Authorization": f"Bearer {signed}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "pequod",
    }
    url = f"{app.api}/app/installations/{app.installation_id}/access_tokens"
    session = aiohttp.ClientSession(  # noqa: TID251 -- the API of a forge is no API server
        connector=connector, timeout=_TIMEOUT
    )
    try:
        async with session, session.post(url, headers=headers, allow_redirects=False) as got:
            return got.status, await got.content.read(_LARGEST)
    except AddressRefusedError:
        raise _refused(app) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _unavailable(app, f"no answer: {type(error).__name__}") from error


def _forge(app: GitHubApp) -> str:
    """The host (and port) whose repositories the tokens of an app are for."""
    api = urlsplit(app.api)
    if api.scheme != "https" or not api.hostname or "@" in api.netloc or api.query:
        raise _denied(app, "the base URL is not https://HOST/api/v3", "correct githubAppBaseURL")
    return "github.com" if api.netloc == _PUBLIC else api.netloc.lower().removesuffix(":443")


def _signed(app: GitHubApp, now: datetime) -> str:
    """The JWT that proves that we hold the app's key."""
    for number in (app.app_id, app.installation_id):
        if not number.isascii() or not number.isdigit():
            raise _denied(app, "an id is not a number", "correct the ids in the Secret")
    claims = {
        "iat": int((now - _SKEW).timestamp()),
        "exp": int((now + _LIFETIME).timestamp()),
        "iss": app.app_id,
    }
    head = _encoded(msgspec.json.encode({"alg": "RS256", "typ": "JWT"}))
    body = f"{head}.{_encoded(msgspec.json.encode(claims))}"
    return f"{body}.{_encoded(_key(app).sign(body.encode(), PKCS1v15(), hashes.SHA256()))}"


def _key(app: GitHubApp) -> RSAPrivateKey:
    try:
        key = load_pem_private_key(app.private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _denied(app, "the private key cannot be read", "give it as PEM") from None
    if not isinstance(key, RSAPrivateKey):
        raise _denied(app, "the private key is not an RSA key", "give the one that GitHub made")
    return key


def _encoded(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _failure(app: GitHubApp, status: int) -> SourceError:
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _unavailable(app, f"the forge answered {status}")
    return _denied(app, f"the forge answered {status}", "see whether the app is still installed")


def _denied(app: GitHubApp, problem: str, next_step: str) -> DeniedError:
    return DeniedError(_named(app), step="credentials", problem=problem, next_step=next_step)


def _refused(app: GitHubApp) -> DeniedError:
    return _denied(app, "its address may not be used", "correct githubAppBaseURL")


def _unavailable(app: GitHubApp, problem: str) -> UnavailableError:
    return UnavailableError(
        _named(app), step="credentials", problem=problem, next_step="see whether the forge is up"
    )


def _named(app: GitHubApp) -> str:
    return f"GitHub App {app.app_id[:20]!r} at {urlsplit(app.api).hostname}"
