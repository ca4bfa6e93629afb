"""What a pull secret says."""

from base64 import b64encode

import msgspec
import pytest

from pequod.sources.credentials import ANONYMOUS, Credentials, GitHubApp, Login, read_secret
from pequod.sources.errors import DeniedError

SECRET = "s3cr3t"


def read(**data: str) -> Credentials:
    keys = {key.replace("__", "-"): value.encode() for key, value in data.items()}
    return read_secret(keys, name="ns/pull")


def docker(**auths: dict[str, str]) -> dict[str, bytes]:
    return {".dockerconfigjson": msgspec.json.encode({"auths": auths})}


def test_an_empty_secret_says_nothing() -> None:
    found = read_secret({}, name="ns/pull")
    assert (found.login, found.ssh, found.app, found.authority) == (None, None, None, None)
    assert ANONYMOUS.for_host("ghcr.io") is None


def test_a_name_and_a_password_are_a_login() -> None:
    assert read(username="ada", password=SECRET).login == Login(username="ada", password=SECRET)


@pytest.mark.parametrize("key", ["token", "bearerToken"])
def test_a_token_is_a_login(key: str) -> None:
    assert read(**{key: SECRET}).login == Login(token=SECRET)


def test_a_docker_configuration_is_bound_to_its_hosts() -> None:
    auth = b64encode(f"ada:{SECRET}:more".encode()).decode()
    found = read_secret(docker(**{"ghcr.io": {"auth": auth}}), name="ns/pull")
    assert found.for_host("ghcr.io") == Login(username="ada", password=f"{SECRET}:more")
    assert found.for_host("evil.example") is None
    assert found.for_host("ghcr.io:5000") is None


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("https://index.docker.io/v1/", "registry-1.docker.io"),
        ("docker.io", "registry-1.docker.io"),
        ("https://quay.io", "quay.io"),
        ("Quay.IO", "quay.io"),
    ],
)
def test_the_host_of_a_docker_configuration_may_be_a_url(key: str, host: str) -> None:
    auths = {key: {"username": "ada", "password": SECRET}}
    found = read_secret(docker(**auths), name="ns/pull")
    assert found.for_host(host) == Login(username="ada", password=SECRET)


def test_the_longest_path_of_a_docker_configuration_wins() -> None:
    places = ("ghcr.io", "ghcr.io/team", "ghcr.io/team/private")
    auths = {place: {"username": place, "password": SECRET} for place in places}
    found = read_secret(docker(**auths, **{"localhost:5000": {}}), name="ns/pull")
    expected = {
        "team/private/app": "ghcr.io/team/private",
        "team/privateer": "ghcr.io/team",
        "team": "ghcr.io/team",
        "teams": "ghcr.io",
        "": "ghcr.io",
    }
    for path, place in expected.items():
        login = found.for_host("ghcr.io", path)
        assert login is not None
        assert login.username == place
    assert found.for_host("localhost:5000") is None, "an empty entry is none"


def test_case_80_a_login_may_be_bound_to_hosts() -> None:
    found = read(username="ada", password=SECRET, hosts="git.test, git.test:8443")
    assert found.for_host("git.test") == found.for_host("git.test:8443") == found.login
    assert found.for_host("evil.example") is None
    assert found.for_host("git.test.evil.example") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"auths": []}', '{"auths": {"a": {"auth": "no base64"}}}']
)
def test_what_is_no_docker_configuration_is_denied_without_its_content(text: str) -> None:
    with pytest.raises(DeniedError, match="is not a Docker configuration") as caught:
        read_secret({".dockerconfigjson": text.encode()}, name="ns/pull")
    assert "no base64" not in str(caught.value)


def test_an_ssh_key_needs_known_hosts() -> None:
    with pytest.raises(DeniedError, match="add the key known_hosts"):
        read(ssh__privatekey="key")
    found = read(ssh__privatekey="key", known_hosts="host key")
    assert found.ssh is not None
    assert found.ssh.private == "key\n"


def test_a_github_app_is_whole_or_an_error() -> None:
    with pytest.raises(DeniedError, match="add githubAppInstallationID, githubAppPrivateKey"):
        read(githubAppID="1")
    app = read(githubAppID="1", githubAppInstallationID="2", githubAppPrivateKey=SECRET).app
    assert app == GitHubApp(app_id="1", installation_id="2", private_key=SECRET)


def test_what_is_no_text_is_denied() -> None:
    with pytest.raises(DeniedError, match="key password is not text"):
        read_secret({"password": b"\xff\xfe"}, name="ns/pull")


def test_secrets_are_never_shown() -> None:
    found = read(
        username="ada",
        password=SECRET,
        token=SECRET,
        ssh__privatekey=SECRET,
        known_hosts="host",
        githubAppID="1",
        githubAppInstallationID="2",
        githubAppPrivateKey=SECRET,
    )
    assert SECRET not in repr(found)
    auths = {"ghcr.io": {"username": "ada", "password": SECRET}}
    assert SECRET not in repr(read_secret(docker(**auths), name="ns/pull"))


def test_the_fingerprint_differs_when_the_content_does() -> None:
    same = {read(username="a", password="b").fingerprint for _ in range(2)}
    assert len(same) == 1
    others = (read(username="a", password="c"), read(username="ab"), read(username="a"))
    assert len({one.fingerprint for one in others} | same) == 4
