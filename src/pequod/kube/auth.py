"""Who we are to an API server, and how we know that it is the right one.

`Endpoint` says where a server is and whom to trust; `Credentials` say who we are, and may change
while we run: tokens rotate, certificates expire, plugins are asked again.
"""

import asyncio
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import structlog

from pequod.kube.errors import CredentialsError

_log = structlog.get_logger()

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
REREAD = 30.0
"""Seconds for which the content of a file of credentials is believed."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, as PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What is shown to a server with a request."""

    authorization: str | None = field(default=None, repr=False)
    """The value of the header Authorization."""
    certificate: ClientCertificate | None = None


ANONYMOUS = Identity()


def bearer(token: str) -> str:
    """The header for a token."""
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    """The header for a name and a password."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


class Credentials(Protocol):
    """Who we are, now."""

    async def current(self) -> Identity:
        """The identity for the next request; cheap, since it is asked for each one."""

    def rejected(self) -> None:
        """The server did not accept the identity: do not rely on what was remembered of it."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Credentials that never change."""

    identity: Identity = ANONYMOUS

    async def current(self) -> Identity:
        """Always the same."""
        return self.identity

    def rejected(self) -> None:
        """There is nothing else to offer."""


class Files:
    """A token, a certificate and a key that somebody else keeps up to date in files."""

    def __init__(
        self,
        *,
        token: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        self._token = token
        self._certificate = certificate
        self._key = key
        self._known: Identity | None = None
        self._expires = -1.0
        self._reading: asyncio.Task[Identity] | None = None

    async def current(self) -> Identity:
        """What the files said a moment ago; what they say now is read while that is used."""
        now = asyncio.get_running_loop().time()
        if now < self._expires and self._known is not None:
            return self._known
        reading = self._reading
        if reading is None:
            reading = asyncio.create_task(self._refresh(), name="read credentials")
            reading.add_done_callback(self._read_once)
            self._reading = reading
        if self._known is not None:
            return self._known
        return await asyncio.shield(reading)

    def rejected(self) -> None:
        """Read the files again before the next request."""
        self._known, self._expires = None, -1.0

    async def _refresh(self) -> Identity:
        self._known = await asyncio.to_thread(self._read)
        self._expires = asyncio.get_running_loop().time() + REREAD
        return self._known

    def _read_once(self, task: asyncio.Task[Identity]) -> None:
        self._reading = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("credentials not read", error=str(error))

    def _read(self) -> Identity:
        token = None if self._token is None else _text(self._token)
        certificate = (
            None
            if self._certificate is None or self._key is None
            else ClientCertificate(read(self._certificate), read(self._key))
        )
        return Identity(
            authorization=bearer(token) if token else None,
            certificate=certificate,
        )


def read(path: Path) -> bytes:
    """A file of credentials."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(
            f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        ) from error


def _text(path: Path) -> str:
    try:
        return read(path).decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise CredentialsError(f"{path} holds something else than plain text") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an API server is, and how to know that it is the right one."""

    server: str
    """Scheme, host, port and, behind a proxy, the path that every request begins with."""
    authority: bytes | None = field(default=None, repr=False)
    """Certificates (PEM) that the server's own must descend from; None for the system's."""
    server_name: str | None = None
    """The name in the server's certificate, where it is not that of the address."""
    verified: bool = True
    proxy: str | None = None

    def tls(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """A context that trusts this server's authority only and shows the certificate."""
        try:
            text = None if self.authority is None else self.authority.decode("ascii", "replace")
            context = ssl.create_default_context(cadata=_certificates(text))
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(
                f"the certificate authority for {self.server} cannot be used: {error}"
            ) from error
        if not self.verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            _show(context, certificate)
        return context


def _certificates(text: str | None) -> str | None:
    """The certificates of a bundle, without the comments between them."""
    if text is None:
        return None
    found = _CERTIFICATE.findall(text)
    if not found:
        # Nothing to trust must not come to mean everything that the system trusts.
        raise ValueError("it holds no certificate")
    return "\n".join(found)


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Load a certificate from memory: OpenSSL wants a path, a disk should not see the key."""
    with _as_path(certificate.certificate + b"\n" + certificate.key) as path:
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise CredentialsError(
                "the client certificate and its key cannot be used: "
                f"{error.strerror if isinstance(error, OSError) else error}"
            ) from error


def _no_password() -> str:
    raise ValueError("the key is encrypted; store it without a passphrase")


@contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("credentials")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """In whose name a request is made; the API server checks that we may."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str | None = None
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_account(cls, namespace: str, name: str) -> "Impersonation":
        """A ServiceAccount."""
        return cls(user=f"system:serviceaccount:{namespace}:{name}")

    def headers(self) -> list[tuple[str, str]]:
        """The headers that say so."""
        return [
            ("Impersonate-User", self.user),
            *(("Impersonate-Group", group) for group in self.groups),
            *((("Impersonate-Uid", self.uid),) if self.uid else ()),
            *((f"Impersonate-Extra-{quote(key, safe='')}", value) for key, value in self.extra),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything that it takes to reach an API server."""

    endpoint: Endpoint
    credentials: Credentials
    namespace: str | None = None
    """The namespace that the credentials come with."""
    impersonation: Impersonation | None = None


def in_cluster(folder: Path = IN_CLUSTER) -> Access | None:
    """How a pod reaches its own cluster; None where this is not a pod."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    token = folder / "token"
    if not host or not port or not token.exists():
        return None
    namespace = folder / "namespace"
    return Access(
        endpoint=Endpoint(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            authority=read(folder / "ca.crt"),
        ),
        credentials=Files(token=token),
        namespace=_text(namespace) if namespace.exists() else None,
    )
