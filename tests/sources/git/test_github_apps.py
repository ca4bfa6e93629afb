"""GitHub Apps: a key becomes a token, for the app's own forge and nobody else."""

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from doubles.gitserver import GitServer, Names
from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials, GitHubApp
from pequod.sources.errors import DeniedError, SourceError, UnavailableError
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.githubapp import AppTokens
from pequod.sources.git.source import GitSource

Refer = Callable[..., GitReference]
KEY = generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
EXCHANGE = "/api/v3/app/installations/22/access_tokens"


class Forge:
    """GitHub's part of the exchange, in front of the git server."""

    def __init__(self, server: GitServer) -> None:
        self.server = server
        self.claims: list[dict[str, Any]] = []
        self.lifetime = timedelta(hours=1)
        self.status = 201
        server.behaviour = self.behave

    @property
    def app(self) -> GitHubApp:
        api = f"https://git.test:{self.server.port}/api/v3"
        return GitHubApp(app_id="11", installation_id="22", private_key=PEM, api=api)

    @property
    def authority(self) -> str:
        return self.server.authority.certificate.decode()

    async def behave(self, request: web.Request) -> web.Response | None:
        if request.path != EXCHANGE:
            return None
        assert request.method == "POST"
        self.claims.append(_verified(request.headers["Authorization"], KEY))
        token = f"ghs_{len(self.claims)}"
        self.server.password = ("x-access-token", token)
        expires = datetime.now(UTC) + self.lifetime
        body = {"token": token, "expires_at": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
        headers = {"Location": "https://git.test:1/"} if self.status == 302 else {}
        return web.json_response(body, status=self.status, headers=headers)


def _verified(header: str, key: RSAPrivateKey) -> dict[str, Any]:
    text = header.removeprefix("Bearer ")
    head, body, signature = text.split(".")
    signed = f"{head}.{body}".encode()
    key.public_key().verify(_decoded(signature), signed, PKCS1v15(), hashes.SHA256())
    assert json.loads(_decoded(head)) == {"alg": "RS256", "typ": "JWT"}
    claims: dict[str, Any] = json.loads(_decoded(body))
    return claims


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def forge(server: GitServer) -> Forge:
    return Forge(server)


def _tokens(**settings: Any) -> AppTokens:  # noqa: ANN401 -- whatever the constructor takes
    return AppTokens(AddressRule(allow_local=True), resolver=Names(), **settings)


async def test_a_repository_is_read_with_the_token_of_an_app(
    forge: Forge, source: GitSource, reference: Refer
) -> None:
    forge.server.repository().commit({"a": "1"})
    credentials = Credentials(app=forge.app, authority=forge.authority, fingerprint="app")
    artifact = await source.resolve(reference("ref=main"), credentials=credentials)
    assert (artifact.tree / "a").read_text() == "1"
    assert len(forge.claims) == 1
    claims = forge.claims[0]
    assert claims["iss"] == "11"
    assert claims["exp"] - claims["iat"] <= 600


async def test_a_token_is_shared_and_renewed_before_it_ends(forge: Forge, reference: Refer) -> None:
    now = datetime.now(UTC)
    tokens = _tokens(clock=lambda: now)
    remote = reference().remote
    first = await asyncio.gather(
        *(tokens.token(forge.app, remote, forge.authority) for _ in range(3))
    )
    assert first == ["ghs_1"] * 3
    now += timedelta(minutes=54)
    assert await tokens.token(forge.app, remote, forge.authority) == "ghs_1"
    now += timedelta(minutes=2)
    assert await tokens.token(forge.app, remote, forge.authority) == "ghs_2"


@pytest.mark.parametrize(
    "url",
    ["https://elsewhere.test/app.git", "https://git.test:1/app.git", "https://github.com/a/b"],
)
async def test_case_80_the_token_goes_to_the_host_of_the_app_only(forge: Forge, url: str) -> None:
    with pytest.raises(DeniedError, match="belongs to"):
        await _tokens().token(forge.app, parse(url).remote, forge.authority)
    assert not forge.claims


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, DeniedError),
        (404, DeniedError),
        (302, DeniedError),
        (429, UnavailableError),
        (502, UnavailableError),
    ],
)
async def test_a_forge_that_gives_no_token_is_told(
    forge: Forge, reference: Refer, status: int, kind: type[SourceError]
) -> None:
    forge.status = status
    with pytest.raises(kind, match=str(status)):
        await _tokens().token(forge.app, reference().remote, forge.authority)


async def test_case_81_an_api_at_an_address_of_ours_is_refused(
    forge: Forge, reference: Refer
) -> None:
    tokens = AppTokens(AddressRule(), resolver=Names())
    with pytest.raises(DeniedError, match="may not be used"):
        await tokens.token(forge.app, reference().remote, forge.authority)
    numbered = GitHubApp(
        app_id="1", installation_id="2", private_key=PEM, api="https://127.0.0.1/api/v3"
    )
    with pytest.raises(DeniedError, match="may not be used"):
        await tokens.token(numbered, parse("https://127.0.0.1/a/b").remote)
    assert not forge.claims
