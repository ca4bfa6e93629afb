"""The user's own kubeconfig, found and merged as kubectl does it.

It is trusted like a shell profile: it may name files to read and programs to run. Kubeconfigs of
other people are read by `remote`, and by nothing else.
"""

import os
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
import yaml

from pequod.kube.auth import (
    ANONYMOUS,
    Access,
    ClientCertificate,
    Credentials,
    Endpoint,
    Files,
    Fixed,
    Identity,
    Impersonation,
    basic,
    bearer,
    in_cluster,
    read,
)
from pequod.kube.errors import CredentialsError
from pequod.kube.execplugin import ExecConfig, ExecPlugin, cluster_info

_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for exec plugins."""


class _Extension(msgspec.Struct, frozen=True):
    name: str
    extension: Any = None


class _Cluster(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: str | None = None
    extensions: list[_Extension] | None = None


class _User(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    plugin: ExecConfig | None = msgspec.field(default=None, name="exec")
    auth_provider: Any = None
    as_user: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    """An item of one of the lists of a kubeconfig; which one says what it holds."""

    name: str
    cluster: _Cluster | None = None
    user: _User | None = None
    context: _Context | None = None


class _Content(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: list[_Entry] | None = None
    users: list[_Entry] | None = None
    contexts: list[_Entry] | None = None
    current_context: str | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something is said: for messages, and for the paths that count from there."""

    file: Path
    what: str

    def failure(self, problem: str) -> CredentialsError:
        return CredentialsError(f"{self.file}: {self.what} {problem}")

    @property
    def folder(self) -> Path:
        return self.file.absolute().parent

    def path(self, name: str | None) -> Path | None:
        return self.folder / name if name else None

    def content(self, key: str, data: str | None, name: str | None) -> bytes | None:
        """What is given in the kubeconfig or, otherwise, in a file of its own."""
        path = self.path(name)
        if not data:
            return read(path) if path else None
        try:
            return b64decode("".join(data.split()), validate=True)
        except ValueError:
            raise self.failure(f"has a {key}-data that is not base64: encode it again") from None


@dataclass(slots=True)
class _Merged:
    """What several files say together: of each name, the first that says anything wins."""

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, tuple[Path, _Entry]] = field(default_factory=dict)
    users: dict[str, tuple[Path, _Entry]] = field(default_factory=dict)
    contexts: dict[str, tuple[Path, _Entry]] = field(default_factory=dict)
    current: str = ""

    def add(self, path: Path, content: _Content) -> None:
        """Take over what is not known yet."""
        self.files.append(path)
        self.current = self.current or content.current_context or ""
        for known, entries in (
            (self.clusters, content.clusters),
            (self.users, content.users),
            (self.contexts, content.contexts),
        ):
            for entry in entries or ():
                known.setdefault(entry.name, (path, entry))


def own_access(path: Path | None = None, context: str | None = None) -> Access:
    """How we reach the cluster that the user means.

    A file that was named is the only one looked at; then KUBECONFIG, the pod that we may be in,
    and the kubeconfig at home. A pod knows no contexts, so it is not meant where one is named.
    """
    if path is not None:
        return _access([path], context)
    listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if listed:
        return _access(listed, context)
    inside = in_cluster() if context is None else None
    if inside is not None:
        return inside
    home = os.environ.get("HOME")
    places = ("KUBECONFIG, which is not set", "the ServiceAccount of a pod")
    return _access([Path(home, ".kube", "config")] if home else [], context, before=places)


def _access(paths: Sequence[Path], context: str | None, *, before: Sequence[str] = ()) -> Access:
    merged = _Merged()
    for path in paths:
        content = _load(path)
        if content is not None:
            merged.add(path, content)
    if not merged.files:
        raise CredentialsError(
            f"no kubeconfig was found (looked for {_listed([*before, *paths])}): "
            "set KUBECONFIG, or pass --kubeconfig"
        )
    return _of_context(merged, context or merged.current)


def _load(path: Path) -> _Content | None:
    """What a file says; None if there is no such file."""
    try:
        content = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
        return _Content() if content is None else msgspec.convert(content, type=_Content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CredentialsError(
            f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise CredentialsError(f"{path} is not valid YAML{line}: correct it") from None
    except msgspec.ValidationError as error:
        raise CredentialsError(f"{path} is not a kubeconfig: {error}") from None
    except ValueError:
        raise CredentialsError(
            f"{path} holds a date or a number that does not exist: put it in quotes"
        ) from None


def _listed(places: Iterable[Path | str]) -> str:
    return ", ".join(str(place) for place in places)


def _of_context(merged: _Merged, name: str) -> Access:
    if not name:
        raise CredentialsError(
            f"{_listed(merged.files)} has no current-context: pass --context, or set one with "
            "`kubectl config use-context`"
        )
    if name not in merged.contexts:
        raise CredentialsError(
            f'context "{name}" is not in {_listed(merged.files)}: '
            "`kubectl config get-contexts` lists those that are"
        )
    path, entry = merged.contexts[name]
    place = _Place(path, f'context "{name}"')
    context = entry.context or _Context()
    cluster_at, cluster = _cluster(merged, context, place)
    user_at, user = _user(merged, context, place)
    endpoint = _endpoint(cluster_at, cluster)
    credentials = [*_header(user_at, user), *_certificate(user_at, user)]
    if user.plugin is not None:
        credentials.append(_plugin(user_at, user.plugin, cluster_info(endpoint, _told(cluster))))
    return Access(
        endpoint=endpoint,
        credentials=credentials[0] if len(credentials) == 1 else Joined(*credentials),
        namespace=context.namespace or None,
        impersonation=_impersonation(user_at, user),
    )


def _cluster(merged: _Merged, context: _Context, place: _Place) -> tuple[_Place, _Cluster]:
    if not context.cluster:
        raise place.failure("has no cluster: add it")
    if context.cluster not in merged.clusters:
        raise place.failure(f'needs cluster "{context.cluster}", which is not there: add it')
    path, entry = merged.clusters[context.cluster]
    return _Place(path, f'cluster "{context.cluster}"'), entry.cluster or _Cluster()


def _user(merged: _Merged, context: _Context, place: _Place) -> tuple[_Place, _User]:
    if not context.user:
        # That is how to be anonymous.
        return place, _User()
    if context.user not in merged.users:
        raise place.failure(f'needs user "{context.user}", which is not there: add it')
    path, entry = merged.users[context.user]
    return _Place(path, f'user "{context.user}"'), entry.user or _User()


def _endpoint(place: _Place, cluster: _Cluster) -> Endpoint:
    if not (cluster.server or "").startswith(("https://", "http://")):
        raise place.failure("has no server that begins with https:// or http://: correct it")
    if not (cluster.proxy_url or "http://").startswith(("https://", "http://")):
        raise place.failure("has a proxy-url that is not supported: use an http:// or https:// one")
    authority = place.content(
        "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority
    )
    if authority and cluster.insecure_skip_tls_verify:
        raise place.failure(
            "has a certificate authority and insecure-skip-tls-verify: remove one of them"
        )
    return Endpoint(
        server=cluster.server or "",
        authority=authority or None,
        server_name=cluster.tls_server_name or None,
        verified=not cluster.insecure_skip_tls_verify,
        proxy=cluster.proxy_url or _environments_proxy(cluster.server or ""),
    )


def _header(place: _Place, user: _User) -> list[Credentials]:
    """The credentials that become a header, if there are any."""
    if user.auth_provider is not None:
        raise place.failure("has an auth-provider, which kubectl no longer supports: use exec")
    if user.username and (user.token or user.token_file):
        raise place.failure("has a token and a username: remove one of them")
    token_file = place.path(user.token_file)
    if token_file is not None:
        return [Files(token=token_file)]
    if user.token:
        if not (user.token.isascii() and user.token.isprintable()):
            raise place.failure("has a token with line breaks or other odd characters: correct it")
        return [Fixed(Identity(authorization=bearer(user.token)))]
    if user.username:
        return [Fixed(Identity(authorization=basic(user.username, user.password or "")))]
    return []


def _certificate(place: _Place, user: _User) -> list[Credentials]:
    """The client certificate, if there is one; read again only if both halves are files."""
    certificate, key = place.path(user.client_certificate), place.path(user.client_key)
    inline = user.client_certificate_data or user.client_key_data
    if certificate and key and not inline:
        return [Files(certificate=certificate, key=key)]
    shown = place.content(
        "client-certificate", user.client_certificate_data, user.client_certificate
    )
    secret = place.content("client-key", user.client_key_data, user.client_key)
    if not shown and not secret:
        return []
    if not shown or not secret:
        raise place.failure("has only one of a client certificate and its key: add the other")
    return [Fixed(Identity(certificate=ClientCertificate(shown, secret)))]


def _plugin(place: _Place, config: ExecConfig, cluster: Mapping[str, object]) -> ExecPlugin:
    where = f"{place.file}: {place.what}"
    return ExecPlugin(config, where=where, folder=place.folder, cluster=cluster)


def _told(cluster: _Cluster) -> object:
    """What a cluster has to say to plugins only."""
    named = (item for item in cluster.extensions or () if item.name == _EXTENSION)
    return next((item.extension for item in named), None)


def _impersonation(place: _Place, user: _User) -> Impersonation | None:
    if user.as_user:
        return Impersonation(
            user=user.as_user,
            groups=tuple(user.as_groups or ()),
            uid=user.as_uid or None,
            extra=tuple(
                (key, value)
                for key, values in (user.as_user_extra or {}).items()
                for value in values
            ),
        )
    if user.as_uid or user.as_groups or user.as_user_extra:
        raise place.failure("has as-uid, as-groups or as-user-extra without as: add it")
    return None


def _environments_proxy(server: str) -> str | None:
    """The proxy that HTTPS_PROXY and NO_PROXY ask for."""
    address = urlsplit(server)
    if proxy_bypass(address.netloc):
        return None
    return getproxies().get(address.scheme)


class Joined:
    """Credentials from several places: of each kind, the first that has it."""

    def __init__(self, *parts: Credentials) -> None:
        self._parts = parts

    async def current(self) -> Identity:
        """The header of one and the certificate of another; who is not needed is not asked."""
        known = ANONYMOUS
        for part in self._parts:
            if known.authorization is None or known.certificate is None:
                found = await part.current()
                known = Identity(
                    authorization=known.authorization or found.authorization,
                    certificate=known.certificate or found.certificate,
                )
        return known

    def rejected(self) -> None:
        """All of them may have something newer."""
        for part in self._parts:
            part.rejected()
