"""Kinds of a test's own, installed in a real API server."""

import secrets

from clusters import Api
from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object
from waiting import eventually


def custom_kind(kind: str = "Widget", *, namespaced: bool = True) -> Kind:
    """A kind in a group that no other test has."""
    group = f"g{secrets.token_hex(4)}.example.com"
    return Kind(group, "v1", kind, f"{kind.lower()}s", namespaced)


def definition(kind: Kind) -> Object:
    """Its CRD: anything goes in it; status and scale are sub-resources."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": anything, "status": anything},
            }
        },
        "subresources": {"status": {}, "scale": scale},
    }
    return {
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "versions": [version],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def install(api: Api, client: Client, kind: Kind) -> None:
    """Install its CRD, and wait until objects of it can be listed."""
    answer = api.create(CRDS, definition(kind))
    assert answer.code == 201, answer.message

    async def served() -> bool:
        try:
            await client.list(kind)
        except NotFoundError:
            return False
        return True

    await eventually(served, f"{kind} is served")


def uninstall(api: Api, kind: Kind) -> None:
    """Remove its CRD, and in time every object of it."""
    assert api.call("DELETE", f"{CRDS}/{kind.resource}").code == 200


async def until_gone(client: Client, kind: Kind) -> None:
    """Wait until a kind is no longer served."""

    async def gone() -> bool:
        try:
            await client.list(kind)
        except NotFoundError:
            return True
        return False

    await eventually(gone, f"{kind} is gone", within=60)
