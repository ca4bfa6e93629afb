"""Whatever somebody puts into a Secret: it is understood or refused, and no secret is told."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from pequod.kube.addresses import AddressRefusedError, AddressRule
from pequod.kube.auth import Fixed
from pequod.kube.remote import InvalidKubeconfigError, parse

TOKEN = "s3cr3t-t0ken-0123456789"
RULES = st.booleans().map(AddressRule)
KEYS = st.sampled_from(
    [
        *("apiVersion", "kind", "preferences", "clusters", "contexts", "users"),
        *("current-context", "name", "cluster", "user", "context", "namespace", "server"),
        *("certificate-authority-data", "tls-server-name", "token", "client-key-data"),
        *("client-certificate-data", "exec", "tokenFile", "as", "<<", TOKEN),
    ]
)
SERVERS = st.text(alphabet="ab01:/.[]@?#%x-", max_size=20).map("https://".__add__)
TEXTS = st.sampled_from(["v1", "Config", "a", TOKEN, f"*{TOKEN}"]) | SERVERS | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.dates() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


PLACES: st.SearchStrategy[tuple[str | int, ...]] = st.sampled_from(
    [
        (),
        *((items, 0) for items in ("clusters", "users", "contexts")),
        *(("clusters", 0, "cluster"), ("users", 0, "user"), ("contexts", 0, "context")),
    ]
)
HOSTS = st.ip_addresses().map(lambda ip: f"[{ip}]" if ip.version == 6 else str(ip))


@st.composite
def almost_right(draw: st.DrawFn) -> dict[str, Any]:
    """A kubeconfig in which one thing may be wrong."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [
            {"name": "a", "cluster": {"server": draw(HOSTS.map("https://".__add__) | SERVERS)}}
        ],
        "users": [{"name": "a", "user": {"token": TOKEN}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "n"}}],
    }
    changed: Any = document
    for step in draw(PLACES):
        changed = changed[step]
    key = draw(st.none() | KEYS | st.sampled_from(sorted(changed)))
    if key is not None:
        changed[key] = draw(VALUES)
    return document


def understood_or_refused(content: bytes, rule: AddressRule) -> None:
    refused: Exception | None = None
    try:
        access = parse(content, address_allowed=rule)
    except (InvalidKubeconfigError, AddressRefusedError) as error:
        refused = error
    if refused is not None:
        assert TOKEN not in str(refused)
        assert str(refused).isprintable()
        assert refused.__cause__ is None
        return
    assert isinstance(access.credentials, Fixed)
    assert access.endpoint.server.startswith("https://")
    assert access.endpoint.verified
    assert access.endpoint.proxy is None
    assert TOKEN not in repr(access)


@given(st.binary(max_size=200), RULES)
def test_any_bytes_are_understood_or_refused(content: bytes, rule: AddressRule) -> None:
    understood_or_refused(content, rule)


@given(st.text(alphabet="ab:-[]{}&*!<>|%@`'\"#?,\n \t\\0\ufeff\x85", max_size=60), RULES)
def test_any_text_that_looks_like_yaml_is_understood_or_refused(
    text: str, rule: AddressRule
) -> None:
    understood_or_refused(f"token: {TOKEN}\n{text}".encode(), rule)
    understood_or_refused(f"{text}{TOKEN}".encode(), rule)


@given(VALUES, RULES)
def test_any_document_is_understood_or_refused(document: object, rule: AddressRule) -> None:
    understood_or_refused(yaml.safe_dump(document).encode(), rule)


@given(almost_right(), RULES)
def test_any_document_that_is_almost_right_is_understood_or_refused(
    document: object, rule: AddressRule
) -> None:
    understood_or_refused(yaml.safe_dump(document).encode(), rule)
