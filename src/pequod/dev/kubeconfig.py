"""Kubeconfigs for a control plane of ours: everything inline, so that one file is enough."""

from base64 import b64encode

import yaml

from pequod.dev.pki import Credential


def kubeconfig(*, name: str, server: str, authority: bytes, user: Credential) -> bytes:
    """A kubeconfig for somebody with a client certificate."""
    credentials = {
        "client-certificate-data": _inline(user.certificate),
        "client-key-data": _inline(user.key),
    }
    return _document(name, server, authority, credentials)


def token_kubeconfig(*, name: str, server: str, authority: bytes, token: str) -> bytes:
    """A kubeconfig for somebody with a token."""
    return _document(name, server, authority, {"token": token})


def _document(name: str, server: str, authority: bytes, user: dict[str, str]) -> bytes:
    """A kubeconfig with one cluster, one user and the context between them."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": _inline(authority)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user}],
    }
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text.encode()


def _inline(content: bytes) -> str:
    return b64encode(content).decode()
