"""Kubeconfigs out of Secrets, written by people whom we do not trust.

A kubeconfig can name programs to run, files to read and servers to send them to. So nothing here
filters: `parse` knows the few keys that a Cluster needs, and everything else is an error. No other
code may read such a text, before or after. Numeric addresses are checked here, names whenever they
are resolved: connect with `Transport(access, resolver=CheckedResolver(rule))`.
"""

import re
import socket
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import NoReturn

import yaml

from pequod.api import reasons
from pequod.kube.addresses import Address, AddressRule, address_refused
from pequod.kube.auth import Access, ClientCertificate, Endpoint, Fixed, Identity, bearer
from pequod.kube.errors import CredentialsError

_LARGEST = 64 * 2**10
_DEEPEST = 10
_TEXT_TAG = "tag:yaml.org,2002:str"
_NULL_TAG = "tag:yaml.org,2002:null"
_NOT_TEXT = object()
"""Stands for a plain scalar that YAML takes for a number, a date or the like."""

_TOP = frozenset(
    {"apiVersion", "kind", "preferences", "clusters", "contexts", "users", "current-context"}
)
_CLUSTER = frozenset({"server", "certificate-authority-data", "tls-server-name"})
_USER = frozenset({"token", "client-certificate-data", "client-key-data"})
_CONTEXT = frozenset({"cluster", "user", "namespace"})

_NO_PLUGINS = "use a token or a client certificate"
_NO_IMPERSONATION = "give the credentials of that account itself"
_INSTEAD: Mapping[str, str] = {
    "exec": _NO_PLUGINS,
    "auth-provider": _NO_PLUGINS,
    "username": _NO_PLUGINS,
    "password": _NO_PLUGINS,
    "tokenfile": "put the content in as token",
    "client-certificate": "put the content in as client-certificate-data",
    "client-key": "put the content in as client-key-data",
    "certificate-authority": "put the content in as certificate-authority-data",
    "insecure-skip-tls-verify": "give certificate-authority-data",
    "proxy-url": "give an address that can be reached without a proxy",
    "as": _NO_IMPERSONATION,
    "as-uid": _NO_IMPERSONATION,
    "as-groups": _NO_IMPERSONATION,
    "as-user-extra": _NO_IMPERSONATION,
}

# A key is repeated in a message only if it looks like one: people paste tokens in odd places.
_SAYABLE = re.compile(r"[A-Za-z][A-Za-z-]{0,39}")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_SERVER = re.compile(
    r"https://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(?P<port>:[0-9]{1,5})?(?P<path>(?:/[A-Za-z0-9._~:@-]*)*)"
)
_NUMBER = re.compile(r"(?:[0-9]+|0[xX][0-9A-Fa-f]*)")
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class InvalidKubeconfigError(CredentialsError):
    """A kubeconfig that holds something which is not allowed, or lacks something."""

    reason = reasons.INVALID_KUBECONFIG


def parse(text: bytes, *, address_allowed: AddressRule) -> Access:
    """The access that a kubeconfig gives, if it holds exactly that and nothing else."""
    top = _Part("", _document(text)).of(_TOP)
    for key, only in (("apiVersion", "v1"), ("kind", "Config")):
        if top[key].text() != only:
            top[key].fail(f"must be {only}")
    preferences = top.get("preferences")
    if preferences is not None and preferences.value not in ({}, None):
        preferences.fail("must be empty: remove it")
    cluster = _sole(top["clusters"], "cluster", _CLUSTER)
    user = _sole(top["users"], "user", _USER)
    context = _sole(top["contexts"], "context", _CONTEXT)
    _same(top["current-context"], top["contexts"])
    _same(context["cluster"], top["clusters"])
    _same(context["user"], top["users"])
    endpoint = _endpoint(cluster, address_allowed)
    return Access(
        endpoint=endpoint,
        credentials=Fixed(_identity(user, endpoint)),
        namespace=_matching(context, "namespace", _NAMESPACE),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the document, and the path that messages call it by."""

    path: str
    value: object

    def fail(self, problem: str) -> NoReturn:
        raise InvalidKubeconfigError(f"{self.path or 'the kubeconfig'} {problem}") from None

    def of(self, allowed: Collection[str]) -> "_Part":
        """The same, known to be a mapping without any other keys."""
        if not isinstance(self.value, dict):
            self.fail("must be a mapping")
        for key in self.value:
            if key not in allowed:
                instead = _INSTEAD.get(key.lower(), "remove it")
                self[key].fail(f"is not allowed in a kubeconfig of a Cluster: {instead}")
        return self

    def get(self, key: str) -> "_Part | None":
        """A part that need not be there."""
        if not isinstance(self.value, dict) or key not in self.value:
            return None
        return _Part(_join(self.path, key), self.value[key])

    def __getitem__(self, key: str) -> "_Part":
        return self.get(key) or _Part(_join(self.path, key), None).fail("is missing: add it")

    def sole(self) -> "_Part":
        """The one item that a list may have."""
        if not isinstance(self.value, list) or len(self.value) != 1:
            self.fail("must be a list of exactly one item: keep that of the cluster")
        return _Part(f"{self.path}[0]", self.value[0])

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("must be a text: put it in quotes")
        return self.value or self.fail("must not be empty")

    def data(self) -> bytes:
        try:
            content = b64decode("".join(self.text().split()), validate=True)
        except ValueError:
            self.fail("is not base64: encode the PEM file with `base64 -w0`")
        return content or self.fail("must not be empty")


def _sole(items: _Part, what: str, allowed: Collection[str]) -> _Part:
    """What the one named item of a list holds."""
    return items.sole().of({"name", what})[what].of(allowed)


def _same(part: _Part, items: _Part) -> None:
    name = items.sole()["name"]
    if part.text() != name.text():
        part.fail(f"is not {name.path}: make them the same")


def _matching(fields: _Part, key: str, form: re.Pattern[str]) -> str | None:
    """The text of an optional field, which must have a form."""
    field = fields.get(key)
    if field is None:
        return None
    return field.text() if form.fullmatch(field.text()) else field.fail("is not a valid name")


def _endpoint(cluster: _Part, rule: AddressRule) -> Endpoint:
    authority = cluster.get("certificate-authority-data")
    endpoint = Endpoint(
        server=_server(cluster["server"], rule),
        authority=authority.data() if authority else None,
        server_name=_matching(cluster, "tls-server-name", _HOST),
    )
    if authority and not _usable(endpoint):
        authority.fail("does not hold a certificate: put in the PEM of the cluster's authority")
    return endpoint


def _server(part: _Part, rule: AddressRule) -> str:
    """The address, put together anew: nobody after us can read it differently."""
    text = part.text()
    if not text.startswith("https://"):
        part.fail("must begin with https://")
    if "@" in text.removeprefix("https://").partition("/")[0]:
        part.fail("must not hold a user or a password: remove everything up to the @")
    if "?" in text or "#" in text:
        part.fail("must not have a query or a fragment: remove everything from the ? or # on")
    found = _SERVER.fullmatch(text)
    if not found or not 0 < int((found["port"] or ":443")[1:]) < 2**16:
        part.fail("is not an address such as https://host:6443")
    return f"https://{_host(part, found['host'], rule)}{found['port'] or ''}{found['path']}"


def _host(part: _Part, host: str, rule: AddressRule) -> str:
    address = _numeric(part, host)
    if address is None:
        return host
    if (why := rule.refuse(address)) is not None:
        raise address_refused(host, f"is {why}")
    shown = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    if isinstance(address, IPv4Address) and shown != host:
        part.fail("has a number for its host: write it as four numbers with dots between them")
    return shown


def _numeric(part: _Part, host: str) -> Address | None:
    """The address that a host is; None for a name, which is checked whenever it is resolved.

    What ends in a number is never a name, but there are systems that take it for an address:
    2130706433, 127.1 and 0x7f.0.0.1 are all this machine.
    """
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1])
        if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
            return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (ValueError, OSError):
        part.fail("has a host that is neither a name nor an address")
    return None if _HOST.fullmatch(host) else part.fail("has a host that is not a valid name")


def _identity(user: _Part, endpoint: Endpoint) -> Identity:
    token = user.get("token")
    certificate, key = user.get("client-certificate-data"), user.get("client-key-data")
    if token is None and certificate is None and key is None:
        user.fail("has no credentials: give a token, or a client certificate and its key")
    identity = Identity(authorization=bearer(_token(token)) if token else None)
    if certificate is None and key is None:
        return identity
    if certificate is None or key is None:
        user.fail("has half of a client certificate: give the -data of both, it and its key")
    shown = ClientCertificate(certificate.data(), key.data())
    if not _usable(endpoint, shown):
        user.fail(
            "has a client certificate and a key that cannot be used: "
            "put in the PEM of both, the key without a passphrase"
        )
    return replace(identity, certificate=shown)


def _token(part: _Part) -> str:
    token = part.text()
    if not (token.isascii() and token.isprintable()) or " " in token:
        part.fail("holds spaces, line breaks or other characters that no token has: remove them")
    return token


def _usable(endpoint: Endpoint, certificate: ClientCertificate | None = None) -> bool:
    """Whether certificates can be loaded; why not is not for messages, which many may read."""
    try:
        endpoint.tls(certificate)
    except (CredentialsError, TypeError):
        return False
    return True


def _join(path: str, key: str) -> str:
    said = key if _SAYABLE.fullmatch(key) else "(a key that is not one of a kubeconfig)"
    return f"{path}.{said}" if path else said


def _document(text: bytes) -> object:
    """The one document of a YAML text without anything clever in it."""
    if len(text) > _LARGEST:
        raise InvalidKubeconfigError(
            f"the kubeconfig is larger than {_LARGEST // 2**10} KiB: keep only what it needs"
        )
    try:
        loader = yaml.CSafeLoader(text.decode())
        try:
            return _Composer(loader).document()
        finally:
            loader.dispose()
    except UnicodeDecodeError:
        raise InvalidKubeconfigError("the kubeconfig is not UTF-8: save it as such") from None
    except yaml.YAMLError as error:
        # The parser's own words may quote the text.
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise InvalidKubeconfigError(f"the kubeconfig is not valid YAML{where}") from None


class _Composer:
    """Makes mappings, lists and texts of the parser's events, which cannot be anything else."""

    def __init__(self, loader: yaml.CSafeLoader) -> None:
        self._loader = loader

    def document(self) -> object:
        self._next()
        if not isinstance(self._next(), yaml.DocumentStartEvent):
            raise InvalidKubeconfigError("the kubeconfig is empty")
        value = self._value(self._next(), "", 1)
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise InvalidKubeconfigError("the kubeconfig has more than one document: keep one")
        return value

    def _next(self) -> yaml.Event:
        event = self._loader.get_event()
        assert event is not None, "nothing is read after the end"
        problem = None
        if getattr(event, "anchor", None) is not None:
            problem = "an anchor or an alias: write the value out"
        elif getattr(event, "tag", None) is not None:
            problem = "a tag: remove it"
        if problem is not None:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise InvalidKubeconfigError(f"line {line} of the kubeconfig has {problem}")
        return event

    def _value(self, event: yaml.Event, path: str, depth: int) -> object:
        if depth > _DEEPEST:
            _Part(path, None).fail(f"is nested more than {_DEEPEST} levels deep")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._scalar(event)

    def _mapping(self, path: str, depth: int) -> dict[str, object]:
        mapping: dict[str, object] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event)
            if not isinstance(key, str):
                _Part(path, None).fail("has a key that is not a text: remove it")
            inside = _join(path, key)
            if key in mapping:
                _Part(inside, None).fail("is given more than once: keep one")
            mapping[key] = self._value(self._next(), inside, depth + 1)
        return mapping

    def _sequence(self, path: str, depth: int) -> list[object]:
        items: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, f"{path}[{len(items)}]", depth + 1))
        return items

    def _scalar(self, event: yaml.Event) -> object:
        """A text; None for nothing; anything else is not told apart."""
        if not isinstance(event, yaml.ScalarEvent):
            return _NOT_TEXT
        resolve: Callable[..., str] = self._loader.resolve
        tag = resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == _TEXT_TAG:
            return event.value
        return None if tag == _NULL_TAG else _NOT_TEXT
