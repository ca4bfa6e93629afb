"""Kubeconfigs for a control plane of ours: everything inline, so that one file is enough."""

from base64 import b64encode

import yaml

from pequod.dev.pki import Credential


def kubeconfig(*, name: str, server: str, authority: bytes, user: Credential) -> bytes:
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
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _inline(user.certificate),
                    "client-key-data": _inline(user.key),
                },
            }
        ],
    }
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text.encode()


def _inline(content: bytes) -> str:
    return b64encode(content).decode()
