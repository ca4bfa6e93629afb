"""Credentials that a program prints: the exec plugins of a user's own kubeconfig.

The protocol is that of client-go (`client.authentication.k8s.io`). A plugin is a program of the
user's choice, so this is never for kubeconfigs of other people: those are read by `remote`.
"""

import asyncio
import os
import signal
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from pequod.base.logs import one_line
from pequod.kube.auth import ANONYMOUS, ClientCertificate, Endpoint, Identity, bearer
from pequod.kube.errors import CredentialsError

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
_PATIENCE = 60.0
_EARLY = timedelta(seconds=10)
"""How long before its end a credential is no longer used: a request takes time, clocks differ."""
_LARGEST = 2**20
_TAIL = 2**12
_FOREVER = datetime.max.replace(tzinfo=UTC)
_NEVER = datetime.min.replace(tzinfo=UTC)


class Variable(msgspec.Struct, frozen=True):
    """A variable that is added to the environment of a plugin."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a kubeconfig says about a plugin."""

    api_version: str
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str = ""
    status: _Status | None = None


def cluster_info(endpoint: Endpoint, config: object = None) -> Mapping[str, object]:
    """What a plugin that asks for it is told about the cluster."""
    info = {
        "server": endpoint.server,
        "tls-server-name": endpoint.server_name,
        "insecure-skip-tls-verify": not endpoint.verified,
        "certificate-authority-data": b64encode(endpoint.authority or b"").decode(),
        "proxy-url": endpoint.proxy,
        "config": config,
    }
    return {key: value for key, value in info.items() if value}


class ExecPlugin:
    """The credentials that a program prints, until they end or are not accepted."""

    def __init__(
        self,
        config: ExecConfig,
        *,
        where: str,
        folder: Path,
        cluster: Mapping[str, object] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._config = config
        self._name = f"{where}: the plugin {config.command!r}"
        _check(config, self._name)
        # With a slash it is a path, which counts from the kubeconfig; without, PATH is searched.
        self._command = str(folder / config.command) if "/" in config.command else config.command
        self._cluster = cluster
        self._patience = patience
        self._known = ANONYMOUS
        self._expires = _NEVER
        self._running: asyncio.Task[Identity] | None = None

    async def current(self) -> Identity:
        """What the plugin said last, or says now; whoever asks meanwhile gets the same answer."""
        if datetime.now(UTC) + _EARLY < self._expires:
            return self._known
        if self._running is None:
            self._running = asyncio.create_task(self._refresh(), name=self._name)
            self._running.add_done_callback(self._done)
        # One who no longer waits does not take the answer from the others.
        return await asyncio.shield(self._running)

    def rejected(self) -> None:
        """Ask the plugin again before the next request."""
        self._expires = _NEVER

    def _done(self, task: asyncio.Task[Identity]) -> None:
        self._running = None
        if not task.cancelled():
            # Taken notice of here, since nobody may be waiting any more.
            task.exception()

    async def _refresh(self) -> Identity:
        status = self._status(await self._output())
        self._known = self._identity(status)
        self._expires = status.expiration_timestamp or _FOREVER
        return self._known

    async def _output(self) -> bytes:
        """What the program prints; it may fail in many ways."""
        process = await self._start()
        try:
            async with asyncio.timeout(self._patience):
                output, complaints = await _both(process)
                code = await process.wait()
        except BaseException as error:
            await _kill(process)
            if isinstance(error, TimeoutError):
                raise self._failure(f"did not end within {self._patience:g} seconds") from None
            raise
        if len(output) > _LARGEST:
            raise self._failure(f"printed more than {_LARGEST // 2**20} MiB")
        if code != 0:
            last = one_line((complaints.strip().splitlines() or ["no output"])[-1], 300)
            raise self._failure(f"ended with code {code}: {last}")
        return output

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._command,
                *(self._config.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
                # A group of its own, so that what it has started can be ended with it.
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            hint = one_line((self._config.install_hint or "").strip())
            step = hint or "install it, or correct the command in the kubeconfig"
            raise self._failure(f"cannot be started: {error.strerror}; {step}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._failure(f"cannot be started: {reason}") from error

    def _environment(self) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": False}
        if self._config.provide_cluster_info and self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        return {
            **os.environ,
            **{variable.name: variable.value for variable in self._config.env or ()},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }

    def _status(self, output: bytes) -> _Status:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = str(error) if isinstance(error, msgspec.ValidationError) else "not JSON"
            raise self._failure(f"did not print an ExecCredential: {problem}") from None
        if answer.kind != "ExecCredential":
            raise self._failure("did not print an ExecCredential: the kind is another one")
        if answer.api_version != self._config.api_version:
            raise self._failure(
                f"did not answer in {self._config.api_version}: "
                "correct apiVersion in the kubeconfig, or update the plugin"
            )
        if answer.status is None:
            raise self._failure("printed an ExecCredential without a status")
        return answer.status

    def _identity(self, status: _Status) -> Identity:
        token, certificate, key = (
            status.token,
            status.client_certificate_data,
            status.client_key_data,
        )
        if not (token or certificate or key):
            raise self._failure("gave neither a token nor a client certificate")
        if bool(certificate) != bool(key):
            raise self._failure("gave only one of a client certificate and its key")
        if token and not (token.isascii() and token.isprintable()):
            raise self._failure("gave a token with line breaks or other odd characters")
        return Identity(
            authorization=bearer(token) if token else None,
            certificate=ClientCertificate(certificate.encode(), key.encode())
            if certificate and key
            else None,
        )

    def _failure(self, problem: str) -> CredentialsError:
        return CredentialsError(f"{self._name} {problem}")


def _check(config: ExecConfig, name: str) -> None:
    """Refuse what could only fail later, or would wait for a person."""
    if config.api_version not in _VERSIONS:
        raise CredentialsError(
            f"{name} has an apiVersion that is not supported: use {_VERSIONS[0]}"
        )
    if not config.command:
        raise CredentialsError(f"{name} has no command: give one")
    mode = config.interactive_mode
    if mode is None and config.api_version == _VERSIONS[0]:
        raise CredentialsError(f"{name} has no interactiveMode: set it to IfAvailable or Never")
    if mode is not None and mode not in _MODES:
        raise CredentialsError(f"{name} has an unknown interactiveMode: use {', '.join(_MODES)}")
    if mode == "Always":
        raise CredentialsError(
            f"{name} wants to talk to a person (interactiveMode Always), which is not possible "
            "here: use a plugin or a token that needs nobody"
        )


async def _both(process: asyncio.subprocess.Process) -> tuple[bytes, str]:
    """The standard output, as far as it is not too much, and the end of the errors."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, complaints = await asyncio.gather(
        _head(process.stdout, lambda: _signal(process)), _tail(process.stderr)
    )
    return output, complaints.decode(errors="replace")


async def _head(stream: asyncio.StreamReader, too_much: Callable[[], None]) -> bytes:
    """Everything, or at least more than is allowed; read to the end, so that there is one."""
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(_LARGEST):
        size += len(part)
        if size - len(part) <= _LARGEST:
            parts.append(part)
        if size > _LARGEST:
            too_much()
    return b"".join(parts)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    end = b""
    while part := await stream.read(_TAIL):
        end = (end + part)[-_TAIL:]
    return end


def _signal(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End a program and what it has started, and wait for that, but not for those that hide."""
    _signal(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await process.wait()
