"""Kubeconfigs of people whom we do not trust: what is accepted, and that nothing else is."""

import asyncio
import json
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from listening import server_tls, serving
from pequod.api import reasons
from pequod.dev.pki import Authority
from pequod.kube import remote
from pequod.kube.addresses import AddressRefusedError, AddressRule, CheckedResolver
from pequod.kube.auth import Access, ClientCertificate, Endpoint, Fixed, Identity, bearer
from pequod.kube.errors import UnreachableError
from pequod.kube.transport import Request, Transport

SERVER = "https://cluster.example:6443"
TOKEN = "s3cr3t-t0ken-0123456789"
PKI = Authority()
PAIR = PKI.client("ann")
OTHER = PKI.client("bob")
RULE = AddressRule()


def inline(content: bytes) -> str:
    return b64encode(content).decode()


CERTIFICATE = {
    "client-certificate-data": inline(PAIR.certificate),
    "client-key-data": inline(PAIR.key),
}


def config(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    **top: object,
) -> dict[str, Any]:
    """A kubeconfig that is fine, but for what is added; None takes something away."""
    cluster = {"server": SERVER, **(cluster or {})}
    user = {"token": TOKEN, **(user or {})}
    context = {"cluster": "c", "user": "u", **(context or {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": _without_none(cluster)}],
        "users": [{"name": "u", "user": _without_none(user)}],
        "contexts": [{"name": "x", "context": _without_none(context)}],
        **{key.replace("_", "-"): value for key, value in top.items()},
    }
    return _without_none(document)


def _without_none(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def dump(document: object) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True).encode()


def text(**parts: Any) -> bytes:  # noqa: ANN401 -- parts of several types
    return dump(config(**parts))


def parse(content: bytes, rule: AddressRule = RULE) -> Access:
    return remote.parse(content, address_allowed=rule)


def refusal(content: bytes) -> str:
    """The message of a refusal, which never tells a secret."""
    with pytest.raises(remote.InvalidKubeconfigError) as caught:
        parse(content)
    assert caught.value.reason == reasons.INVALID_KUBECONFIG
    message = str(caught.value)
    assert TOKEN not in message
    assert "\n" not in message
    return message


_acts: list[tuple[str, str]] | None = None


def _remember(event: str, args: tuple[object, ...]) -> None:
    if _acts is not None and event.startswith(("subprocess.", "os.", "open", "socket.", "pty.")):
        _acts.append((event, str(args)))


sys.addaudithook(_remember)


@contextmanager
def nothing_happens() -> Iterator[None]:
    """No program is run, no file is opened, no connection is made."""
    global _acts  # noqa: PLW0603 -- an audit hook is there once and for good
    _acts = []
    try:
        yield
        assert _acts == []
    finally:
        _acts = None


def test_the_watch_for_things_that_happen_works(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), nothing_happens():
        (tmp_path / "canary").touch()
    with pytest.raises(AssertionError), nothing_happens():
        subprocess.run(["true"], check=True)


def test_the_seven_keys_that_a_cluster_needs_are_taken_over() -> None:
    content = text(
        preferences={},
        cluster={
            "certificate-authority-data": inline(PKI.certificate),
            "tls-server-name": "kubernetes.default",
        },
        user=CERTIFICATE,
        context={"namespace": "apps"},
    )
    found = parse(content)
    assert found.endpoint == Endpoint(
        server=SERVER, authority=PKI.certificate, server_name="kubernetes.default"
    )
    shown = ClientCertificate(PAIR.certificate, PAIR.key)
    identity = Identity(authorization=bearer(TOKEN), certificate=shown)
    assert found.credentials == Fixed(identity)
    assert found.namespace == "apps"


FINE = (
    "cluster.example cluster.example./k8s/clusters/c-m-1:2 xn--bcher-kva.example 10.0.0.1:6443 "
    "172.16.0.1 192.168.1.1 100.64.0.1 93.184.216.34 [fd00::1]:6443/ [2600::1] "
    "[64:ff9b::a00:1]"
)


@pytest.mark.parametrize("server", FINE.split())
def test_addresses_that_clusters_have_are_fine(server: str) -> None:
    found = parse(text(cluster={"server": f"https://{server}"}))
    assert found.endpoint.server == f"https://{server}"


def test_a_certificate_is_enough_and_json_is_yaml() -> None:
    found = parse(json.dumps(config(user={"token": None, **CERTIFICATE})).encode())
    shown = ClientCertificate(PAIR.certificate, PAIR.key)
    assert found.credentials == Fixed(Identity(certificate=shown))


RUN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": ["CANARY"]}
GCP = {"name": "gcp", "config": {"cmd-path": "touch", "cmd-args": "CANARY"}}
ONE, TWO = {"name": "u", "user": {"token": TOKEN}}, {"name": "v", "user": {"exec": RUN}}
EXEC = "users[0].user.exec is not allowed in a kubeconfig of a Cluster: use a token or a client"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (config(user={"token": None, "exec": RUN}), EXEC),
        (config(user={"exec": RUN}), EXEC),
        (config(user={"exec": None, "Exec": RUN}), EXEC.replace("exec", "Exec", 1)),
        (config(user={"auth-provider": GCP}), "users[0].user.auth-provider is not allowed"),
        (config(user={"env": [{"name": "A"}]}), "users[0].user.env is not allowed"),
        (config(user={"ex\u0435c": RUN}), "is not allowed"),
        (config(users=[ONE, TWO]), "users must be a list of exactly one item"),
        (config(contexts=[ONE, TWO]), "contexts must be a list of exactly one item"),
    ],
)
def test_case_93_an_exec_plugin_in_a_secret_is_refused_and_never_run(
    tmp_path: Path, document: dict[str, Any], problem: str
) -> None:
    _refused_without_running(dump(document).decode(), problem, tmp_path / "canary")


def _refused_without_running(content: str, problem: str, canary: Path) -> None:
    with nothing_happens():
        assert problem in refusal(content.replace("CANARY", str(canary)).encode())
    assert not canary.exists()


EXEC_TEXT = "exec: {apiVersion: v1, command: touch, args: [CANARY]}"
WHOLE = text().decode()
USER = "  user:\n    token:"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"run: &run {{{EXEC_TEXT}}}\n" + WHOLE, "line 1 of the kubeconfig has an anchor"),
        (WHOLE.replace(USER, "  user:\n    <<: {" + EXEC_TEXT + "}\n    token:"), "not a text"),
        (WHOLE.replace("token:", "token: a\n    token:"), "users[0].user.token is given more"),
        (WHOLE + f"---\n{EXEC_TEXT}\n", "more than one document"),
        (WHOLE.replace("token: ", "token: !!python/object/apply:os.system "), "has a tag"),
        (WHOLE.replace("token: ", "token: ! "), "has a tag"),
        (WHOLE.replace("token: ", "token: *a # "), "has an anchor or an alias"),
        (WHOLE.replace(USER, "  user: !!map\n    token:"), "has a tag"),
        (WHOLE.replace(USER, "  user:\n    ? [a]\n    : b\n    token:"), "not a text"),
        (WHOLE.replace(USER, "  user:\n    1: b\n    token:"), "not a text"),
    ],
)
def test_case_93_nothing_can_be_hidden_behind_what_yaml_can_do(
    tmp_path: Path, content: str, problem: str
) -> None:
    assert content != WHOLE
    _refused_without_running(content, problem, tmp_path / "canary")


@pytest.mark.parametrize(
    ("part", "key", "instead"),
    [
        ("user", "tokenFile", "token"),
        ("user", "client-certificate", "client-certificate-data"),
        ("user", "client-key", "client-key-data"),
        ("cluster", "certificate-authority", "certificate-authority-data"),
    ],
)
def test_case_94_a_path_in_a_secret_is_refused_and_never_read(
    tmp_path: Path, part: str, key: str, instead: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("our own token")
    content = text(**{part: {key: str(secret)}})
    with nothing_happens():
        message = refusal(content)
    assert message == (
        f"{part}s[0].{part}.{key} is not allowed in a kubeconfig of a Cluster: "
        f"put the content in as {instead}"
    )


FORBIDDEN = {
    "cluster": "insecure-skip-tls-verify proxy-url extensions disable-compression Server",
    "user": "as as-uid as-groups as-user-extra username password extensions impersonate",
    "context": "extensions",
}


@pytest.mark.parametrize(
    ("part", "key"), [(part, key) for part, keys in FORBIDDEN.items() for key in keys.split()]
)
def test_case_95_what_weakens_or_redirects_a_connection_is_refused(part: str, key: str) -> None:
    message = refusal(text(**{part: {key: True}}))
    assert message.startswith(f"{part}s[0].{part}.{key} is not allowed in a kubeconfig of a Clus")


BAD_SERVERS = {
    "must begin with https://": "http://h HTTPS://h file:///etc/passwd cluster.example:6443 //h",
    "must not hold a user or a password": f"https://u:{TOKEN}@h https://h#@other https://a@b@c",
    "must not have a query or a fragment": f"https://h/?{TOKEN} https://h?x https://h/#other",
    "is not an address such as": "https:// https://h:0 https://h:65536 https://h\\other "
    "https://h/%2e%2e https://\uff11\uff12\uff17.1 https://[fe80::1%25eth0] https://h\0",
    "neither a name nor an address": "https://[::1:] https://1.2.3.4.5 https://[10.0.0.1]",
    "not a valid name": f"https://a..b https://-a https://{'a' * 64}.b",
    "has a number for its host": "https://167772161 https://10.1 https://10.0.0.1. https://0xa.1",
}


@pytest.mark.parametrize(
    ("server", "problem"),
    [(server, problem) for problem, servers in BAD_SERVERS.items() for server in servers.split()],
)
def test_case_95_a_server_is_a_plain_https_address(server: str, problem: str) -> None:
    message = refusal(text(cluster={"server": server}))
    assert message.startswith("clusters[0].cluster.server ")
    assert problem in message
    assert "is not an address such as" in refusal(text(cluster={"server": f"{SERVER}\r\nX: y"}))


REFUSED_BY_KIND = {
    "a loopback address": "127.0.0.1 127.8.9.10 ::1 ::ffff:127.0.0.1 2002:7f00:1:: "
    "64:ff9b::127.0.0.1 2001:0:1:2:3:4:80ff:fffe",
    "a link-local address": "169.254.169.254 ::ffff:169.254.169.254 2002:a9fe:a9fe::1 "
    "64:ff9b::a9fe:a9fe fe80::1",
    "an unspecified address": "0.0.0.0 0.1.2.3 ::",
    "a multicast address": "224.0.0.1 ff02::1",
    "a reserved address": "240.0.0.1 255.255.255.255 ::127.0.0.1 64:ff9b:1::7f00:1",
    "a metadata service": "100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254",
}
REFUSED = [(ip, kind) for kind, ips in REFUSED_BY_KIND.items() for ip in ips.split()]


@pytest.mark.parametrize(("address", "kind"), REFUSED)
def test_case_81_addresses_that_are_only_ours_to_reach_are_refused(address: str, kind: str) -> None:
    local = None if kind == "a loopback address" else kind
    assert AddressRule(allow_local=True).refuse(ip_address(address)) == local
    assert RULE.refuse(ip_address(address)) == kind
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefusedError) as caught:
        parse(text(cluster={"server": f"https://{host}"}))
    assert caught.value.reason == reasons.ADDRESS_REFUSED
    assert f"the server {host} is {kind}" in str(caught.value)


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "0"])
def test_case_81_odd_spellings_of_such_addresses_are_refused(host: str) -> None:
    with pytest.raises(AddressRefusedError, match="may not lead to"):
        parse(text(cluster={"server": f"https://{host}:6443"}))


class Names(AbstractResolver):
    """A name server that says what it is told to."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, _family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        kind = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            ResolveResult(
                hostname=host, host=ip, port=port, family=kind[":" in ip], proto=0, flags=0
            )
            for ip in answer
        ]

    async def close(self) -> None:
        self.answers.clear()


async def test_case_81_refused_addresses_are_taken_out_of_the_answer_for_a_name() -> None:
    names = Names(["169.254.169.254", "10.0.0.1", "::1", "fe80::1%1", "not an address"])
    resolver = CheckedResolver(RULE, names)
    assert [found["host"] for found in await resolver.resolve("h", 1)] == ["10.0.0.1"]
    await resolver.close()
    assert names.answers == []


@pytest.mark.parametrize("answer", [["127.0.0.1"], ["::ffff:127.0.0.1", "::1"], ["x"], []])
async def test_case_81_a_name_without_an_allowed_address_is_refused(answer: list[str]) -> None:
    with pytest.raises(AddressRefusedError, match="the server h stands for"):
        await CheckedResolver(RULE, Names(answer)).resolve("h", 1)


@pytest.mark.parametrize("host", ["localhost", "2130706433", "127.1"])
async def test_case_81_odd_names_for_this_machine_are_refused_when_resolved(host: str) -> None:
    with pytest.raises(AddressRefusedError, match="a loopback address"):
        await CheckedResolver(RULE).resolve(host, 443)


class Sink:
    """An API server on this machine that remembers what it was shown."""

    def __init__(self) -> None:
        self.port = 0
        self.shown: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.shown.append(request.headers["Authorization"])
        return web.Response(body=b"fine")

    def access(self, host: str, rule: AddressRule = RULE) -> Access:
        cluster = {
            "server": f"https://{host}:{self.port}",
            "certificate-authority-data": inline(PKI.certificate),
        }
        return parse(text(cluster=cluster), rule)


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    made = Sink()
    tls = server_tls(PKI, "cluster.example", "127.0.0.1")
    async with serving(made.answer, tls=tls) as made.port:
        yield made


async def get(access: Access, resolver: AbstractResolver, *, times: int = 1) -> list[object]:
    """The answers of a server, or what went wrong with each."""
    transport = Transport(access, resolver=resolver)
    request = Request(method="GET", path="/api", verb="get")
    try:
        requests = (transport.send(request) for _ in range(times))
        return list(await asyncio.gather(*requests, return_exceptions=True))
    finally:
        await transport.close()


async def test_case_81_a_connection_to_a_refused_address_is_never_made(sink: Sink) -> None:
    resolver = CheckedResolver(RULE, Names(["127.0.0.1"]))
    failures = await get(sink.access("cluster.example"), resolver, times=5)
    assert [type(failure) for failure in failures] == [AddressRefusedError] * 5
    assert sink.shown == []


async def test_case_81_localhost_is_not_reached_by_its_name(sink: Sink) -> None:
    [failure] = await get(sink.access("localhost"), CheckedResolver(RULE))
    assert "the server localhost stands for a loopback address" in str(failure)
    assert (type(failure), sink.shown) == (AddressRefusedError, [])


async def test_case_81_a_name_is_checked_each_time_that_it_is_resolved() -> None:
    resolver = CheckedResolver(RULE, Names(["93.184.216.34"], ["127.0.0.1"]))
    await resolver.resolve("rebinding.example", 443)
    with pytest.raises(AddressRefusedError):
        await resolver.resolve("rebinding.example", 443)


@pytest.mark.parametrize("host", ["cluster.example", "127.0.0.1"])
async def test_where_local_clusters_are_allowed_they_are_reached(sink: Sink, host: str) -> None:
    rule = AddressRule(allow_local=True)
    resolver = CheckedResolver(rule, Names(["169.254.169.254", "127.0.0.1"]))
    assert await get(sink.access(host, rule), resolver) == [b"fine"]
    assert sink.shown == [bearer(TOKEN)]


async def test_a_name_that_does_not_exist_is_unreachable_and_not_refused(sink: Sink) -> None:
    [failure] = await get(sink.access("does-not-exist.invalid"), CheckedResolver(RULE))
    assert isinstance(failure, UnreachableError)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"user": {"token": None}}, "users[0].user has no credentials"),
        ({"user": {"client-key-data": inline(PAIR.key)}}, "half of a client certificate"),
        ({"user": {**CERTIFICATE, "client-key-data": inline(OTHER.key)}}, "cannot be used"),
        ({"user": {**CERTIFICATE, "client-certificate-data": "eA=="}}, "cannot be used"),
        ({"user": {**CERTIFICATE, "client-key-data": TOKEN}}, "client-key-data is not base64"),
        ({"user": {**CERTIFICATE, "client-key-data": " "}}, "client-key-data must not be empty"),
        ({"user": {"token": ""}}, "users[0].user.token must not be empty"),
        ({"user": {"token": 7}}, "users[0].user.token must be a text: put it in quotes"),
        ({"user": {TOKEN: "x"}}, "users[0].user.(a key that is not one of a kubeconfig)"),
        ({"cluster": {"server": None}}, "clusters[0].cluster.server is missing"),
        ({"cluster": {"certificate-authority-data": "eA=="}}, "does not hold a certificate"),
        ({"cluster": {"certificate-authority-data": "w6k="}}, "does not hold a certificate"),
        ({"cluster": {"certificate-authority-data": ""}}, "must not be empty"),
        ({"cluster": {"tls-server-name": ".a"}}, "tls-server-name is not a valid name"),
        ({"preferences": {"colors": True}}, "preferences must be empty"),
        ({"extensions": []}, "extensions is not allowed"),
        ({"context": {"namespace": "../x"}}, "namespace is not a valid name"),
        ({"context": {"cluster": None}}, "contexts[0].context.cluster is missing"),
        ({"context": {"cluster": "d"}}, "contexts[0].context.cluster is not clusters[0].name"),
        ({"context": {"user": "d"}}, "contexts[0].context.user is not users[0].name"),
        ({"current_context": "d"}, "current-context is not contexts[0].name"),
        ({"current_context": None}, "current-context is missing"),
        ({"apiVersion": "v2"}, "apiVersion must be v1"),
        ({"kind": "Secret"}, "kind must be Config"),
        ({"users": None}, "users is missing"),
        ({"users": ["x"]}, "users[0] must be a mapping"),
        ({"users": [{"user": {}}]}, "users[0].name is missing"),
        ({"users": [{"name": "u", "user": None}]}, "users[0].user must be a mapping"),
        ({"users": [{"name": "u", "token": TOKEN}]}, "users[0].token is not allowed"),
    ],
)
def test_what_is_missing_or_wrong_is_named_by_its_path_and_never_quoted(
    parts: dict[str, Any], problem: str
) -> None:
    assert problem in refusal(text(**parts))


@pytest.mark.parametrize("end", ["\n", " x", "\x7f", "é", "\u2028"])
def test_a_token_has_no_line_breaks_and_the_like(end: str) -> None:
    assert "users[0].user.token holds spaces" in refusal(text(user={"token": TOKEN + end}))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the kubeconfig is empty"),
        (TOKEN.encode(), "the kubeconfig must be a mapping"),
        (b"\xff\xfea", "the kubeconfig is not UTF-8"),
        (f"users: [{TOKEN}".encode(), "the kubeconfig is not valid YAML in line "),
        (f"a: {TOKEN}\0".encode(), "the kubeconfig is not valid YAML"),
        (b"a: " + b"x" * 2**16, "the kubeconfig is larger than 64 KiB"),
        (b"[" * 2**15, "levels deep"),
        (b"a: " + b"[" * 10 + b"]" * 10, "is nested more than 10 levels deep"),
        (b"- " * 2**15, "levels deep"),
    ],
)
def test_what_is_not_a_small_plain_document_is_refused(content: bytes, problem: str) -> None:
    assert problem in refusal(content)
