"""The way to one repository: checked addresses, and credentials that reach nobody else.

Nothing secret is on a command line. A password is a header that git sends to exactly one origin;
keys and authorities are files of a private folder, which is gone when the block ends.
"""

import shutil
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp.abc import AbstractResolver

from pequod.kube.addresses import AddressRule
from pequod.sources.credentials import Credentials, Login
from pequod.sources.errors import DeniedError
from pequod.sources.git.address import GitReference
from pequod.sources.git.dialing import addresses
from pequod.sources.git.githubapp import AppTokens
from pequod.sources.git.remote import Remote
from pequod.sources.git.settings import Setting
from pequod.sources.git.sshconfig import ssh_command

_TOKEN_USER = "x-access-token"  # noqa: S105 -- the name that forges expect beside a token


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a git process gets in order to reach the remote `origin`."""

    settings: tuple[Setting, ...]
    protocols: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What no message may repeat."""


class Gate:
    """Opens the way to repositories."""

    def __init__(
        self,
        folder: Path,
        *,
        rule: AddressRule,
        apps: AppTokens,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._folder = folder
        self._rule = rule
        self._apps = apps
        self._resolver = resolver

    @asynccontextmanager
    async def opened(
        self, reference: GitReference, credentials: Credentials
    ) -> AsyncIterator[Access]:
        """Let git reach a repository for the length of a block."""
        remote = reference.remote
        numbers = await addresses(remote, self._rule, self._resolver)
        login = None if remote.by_ssh else await self._login(remote, credentials)
        private = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            if remote.by_ssh:
                yield _by_ssh(remote, numbers[0], credentials, private)
            else:
                yield _by_http(remote, numbers, (login, credentials.authority), private)
        finally:
            shutil.rmtree(private, ignore_errors=True)

    async def _login(self, remote: Remote, credentials: Credentials) -> Login | None:
        if credentials.app is not None:
            token = await self._apps.token(credentials.app, remote, credentials.authority)
            return Login(token=token)
        return credentials.for_host(remote.authority)


def _by_http(
    remote: Remote, numbers: tuple[str, ...], trust: tuple[Login | None, str | None], private: Path
) -> Access:
    login, authority = trust
    settings = [("remote.origin.url", remote.url)]
    if numbers != (remote.host,):
        listed = ",".join(f"[{one}]" if ":" in one else one for one in numbers)
        settings.append(("http.curloptResolve", f"{remote.host}:{remote.port}:{listed}"))
    if authority is not None:
        settings += _authority(private, authority)
    if login is None:
        return Access(settings=tuple(settings), protocols=(remote.scheme,))
    if remote.scheme != "https":
        raise _denied(remote, "credentials are not sent over http", "use https")
    user = login.username or _TOKEN_USER
    secret = login.token or login.password
    basic = b64encode(f"{user}:{secret}".encode()).decode()
    settings.append((f"http.{remote.origin}/.extraHeader", f"Authorization: Basic {basic}"))
    return Access(
        settings=tuple(settings), protocols=(remote.scheme,), secrets=_secrets(secret, basic)
    )


def _authority(private: Path, authority: str) -> list[Setting]:
    """Believe this authority and no other: without a folder of its own, curl takes the system's."""
    others = private / "none"
    others.mkdir()
    return [
        ("http.sslCAInfo", _written(private / "ca.crt", authority)),
        ("http.sslCAPath", str(others)),
    ]


def _by_ssh(remote: Remote, number: str, credentials: Credentials, private: Path) -> Access:
    key = credentials.ssh
    if key is None:
        raise _denied(
            remote,
            "SSH needs a key and the host's own key",
            "give a Secret with ssh-privatekey and known_hosts, or use https",
        )
    files = (
        _written(private / "key", key.private),
        _written(private / "known_hosts", key.known_hosts),
    )
    command = ssh_command(remote, number, *files, config=private / "config")
    return Access(
        settings=(("remote.origin.url", remote.url),),
        protocols=("ssh",),
        variables={"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"},
        secrets=_secrets(key.private),
    )


def _secrets(*values: str) -> tuple[str, ...]:
    return tuple(value for value in values if value)


def _written(path: Path, content: str) -> str:
    """Write a file that nobody else can read, not even for a moment."""
    path.touch(mode=0o600)
    path.write_text(content)
    return str(path)


def _denied(remote: Remote, problem: str, next_step: str) -> DeniedError:
    return DeniedError(remote.url, step="credentials", problem=problem, next_step=next_step)
