"""Secrets of GitHub Apps that cannot be right."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import GitHubApp
from pequod.sources.errors import DeniedError
from pequod.sources.git.address import parse
from pequod.sources.git.githubapp import AppTokens

APP = GitHubApp(app_id="1", installation_id="2", private_key="nonsense-but-secret")
OTHER_KEY = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (APP, "private key cannot be read"),
        (replace(APP, private_key=OTHER_KEY), "not an RSA key"),
        (replace(APP, app_id="1/../x"), "an id is not a number"),
        (replace(APP, installation_id="2?x"), "an id is not a number"),
        (replace(APP, api="http://api.github.com"), "base URL"),
        (replace(APP, api="https://user:nonsense-but-secret@api.github.com"), "base URL"),
        (replace(APP, api="https://ghes.test/api/v3"), "belongs to ghes.test"),
    ],
)
async def test_what_cannot_be_right_is_told_before_anybody_is_asked(
    app: GitHubApp, said: str
) -> None:
    remote = parse("https://github.com/a/b.git").remote
    with pytest.raises(DeniedError, match=said) as caught:
        await AppTokens(AddressRule()).token(app, remote)
    assert "nonsense-but-secret" not in str(caught.value)


async def test_an_authority_that_is_none_is_told() -> None:
    remote = parse("https://github.com/a/b.git").remote
    with pytest.raises(DeniedError, match=r"ca\.crt"):
        await AppTokens(AddressRule()).token(APP, remote, "not a certificate")
