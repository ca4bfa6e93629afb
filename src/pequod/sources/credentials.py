"""What a pull secret holds, read once, and for which hosts."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from pequod.sources.errors import DeniedError

_DOCKER_CONFIG = ".dockerconfigjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A name and a password, or a token."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKey:
    """A private key, and the host keys that may answer."""

    private: str = field(repr=False)
    known_hosts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubApp:
    """An installation of a GitHub App, whose key is exchanged for short-lived tokens."""

    app_id: str
    installation_id: str
    private_key: str = field(repr=False)
    api: str = "https://api.github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Everything that a Secret says; empty when there is none."""

    login: Login | None = None
    """For any host that the Secret is used with, or for those of `only`."""
    only: tuple[str, ...] = ()
    """Hosts that the login is for, where the Secret says so (key `hosts`)."""
    hosts: Mapping[str, Login] = field(default_factory=dict)
    """By host, port and perhaps the beginning of a path, as in a dockerconfigjson."""
    ssh: SshKey | None = None
    app: GitHubApp | None = None
    authority: str | None = None
    """Certificates, in PEM, that the server is verified with instead of the system's."""
    fingerprint: str = ""
    """Differs when the content does; the content can't be guessed from it without the Secret."""

    def for_host(self, host: str, path: str = "") -> Login | None:
        """What may be sent to a host; the entry with the longest path wins."""
        fitting = [key for key in self.hosts if _covers(key, f"{host}/{path}".rstrip("/"))]
        if fitting:
            return self.hosts[max(fitting, key=len)]
        return self.login if not self.only or host in self.only else None


def _covers(key: str, place: str) -> bool:
    return place == key or place.startswith(f"{key}/")


ANONYMOUS = Credentials()


class _Auth(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""
    registrytoken: str = ""


class _DockerConfig(msgspec.Struct, frozen=True):
    auths: dict[str, _Auth] = {}


def read_secret(data: Mapping[str, bytes], *, name: str) -> Credentials:
    """The credentials of a Secret's decoded data; `name` is for messages."""
    texts = {key: _text(value, key, name) for key, value in data.items()}
    login = Login(
        username=texts.get("username", ""),
        password=texts.get("password", ""),
        token=texts.get("bearerToken") or texts.get("token", ""),
    )
    return Credentials(
        login=login if login != Login() else None,
        only=tuple(texts.get("hosts", "").replace(",", " ").split()),
        hosts=_docker_hosts(texts[_DOCKER_CONFIG], name) if _DOCKER_CONFIG in texts else {},
        ssh=_ssh(texts, name),
        app=_app(texts, name),
        authority=texts.get("ca.crt"),
        fingerprint=_fingerprint(data),
    )


def _text(value: bytes, key: str, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _unusable(name, f"key {key} is not text") from None


def _ssh(texts: Mapping[str, str], name: str) -> SshKey | None:
    private = texts.get("ssh-privatekey") or texts.get("identity")
    if private is None:
        return None
    known = texts.get("known_hosts", "")
    if not known.strip():
        raise _unusable(
            name,
            "an SSH key without known_hosts is not used: anybody could answer",
            "add the key known_hosts, for example from `ssh-keyscan HOST` after checking it",
        )
    return SshKey(private=private if private.endswith("\n") else f"{private}\n", known_hosts=known)


def _app(texts: Mapping[str, str], name: str) -> GitHubApp | None:
    keys = ("githubAppID", "githubAppInstallationID", "githubAppPrivateKey")
    if not any(key in texts for key in keys):
        return None
    missing = [key for key in keys if not texts.get(key)]
    if missing:
        raise _unusable(name, f"it has no {' and no '.join(missing)}", f"add {', '.join(missing)}")
    identifier, installation, private = (texts[key].strip() for key in keys)
    base = texts.get("githubAppBaseURL", "https://api.github.com").rstrip("/")
    return GitHubApp(app_id=identifier, installation_id=installation, private_key=private, api=base)


def _docker_hosts(text: str, name: str) -> dict[str, Login]:
    try:
        config = msgspec.json.decode(text, type=_DockerConfig)
        logins = {_place(key): _login(auth) for key, auth in config.auths.items()}
        return {place: login for place, login in logins.items() if login != Login()}
    except (msgspec.MsgspecError, ValueError, binascii.Error):
        raise _unusable(name, f"{_DOCKER_CONFIG} is not a Docker configuration") from None


def _place(key: str) -> str:
    """The host of a key, which may be a whole URL, and a path if it is for a part of it only.

    Docker Hub answers at another name than it is known by; `/v1/` is what Docker writes for it.
    """
    host, _, path = key.removeprefix("https://").removeprefix("http://").partition("/")
    path = path.strip("/")
    host = host.lower()
    if host in {"index.docker.io", "docker.io"}:
        host = "registry-1.docker.io"
    return host if path in {"", "v1", "v2"} else f"{host}/{path}"


def _login(auth: _Auth) -> Login:
    username, password = auth.username, auth.password
    if auth.auth:
        username, _, password = b64decode(auth.auth, validate=True).decode().partition(":")
    return Login(username=username, password=password, token=auth.registrytoken)


def _fingerprint(data: Mapping[str, bytes]) -> str:
    whole = sha256()
    for key in sorted(data):
        whole.update(f"{key}\0{len(data[key])}\0".encode() + data[key])
    return whole.hexdigest()


def _unusable(name: str, problem: str, next_step: str = "correct the Secret") -> DeniedError:
    return DeniedError(f"Secret {name}", step="credentials", problem=problem, next_step=next_step)
