"""What the operator may do: exactly what its controllers declare."""

from collections.abc import Iterable
from typing import Any

from pequod.crd.manifests import manifest
from pequod.operator import RECONCILERS
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.settings import NAME, NAMESPACE

_API = "rbac.authorization.k8s.io"


def operator_rbac() -> list[dict[str, Any]]:
    """The operator's namespace, its account, and what the account may do for its controllers."""
    return [
        manifest("v1", "Namespace", name=NAMESPACE),
        manifest("v1", "ServiceAccount", name=NAME, namespace=NAMESPACE),
        cluster_role(NAME) | {"rules": rules(RECONCILERS)},
        cluster_role_binding(NAME),
        manifest(f"{_API}/v1", "Role", name=NAME, namespace=NAMESPACE) | {"rules": _own_rules()},
        manifest(f"{_API}/v1", "RoleBinding", name=NAME, namespace=NAMESPACE)
        | _to_the_operator("Role", NAME),
    ]


def cluster_role(name: str, *, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A ClusterRole that does not allow anything yet."""
    return manifest(f"{_API}/v1", "ClusterRole", name=name, labels=labels)


def cluster_role_binding(name: str) -> dict[str, Any]:
    """What gives the ClusterRole of the same name to the operator."""
    binding = manifest(f"{_API}/v1", "ClusterRoleBinding", name=name)
    return binding | _to_the_operator("ClusterRole", name)


def rules(reconcilers: Iterable[type[Reconciler[Any]]]) -> list[dict[str, Any]]:
    """The rules of a ClusterRole for some reconcilers."""
    permissions = [Permission(group="events.k8s.io", resources=("events",), verbs=_EVENTS)]
    for reconciler in reconcilers:
        permissions += [*own_kind(reconciler), *reconciler.permissions]
    return [rule(permission) for permission in dict.fromkeys(permissions)]


_EVENTS = ("create", "patch")


def own_kind(reconciler: type[Reconciler[Any]]) -> list[Permission]:
    """What the frame needs of a reconciler's own kind."""
    definition = reconciler.kind.definition
    group, plural = definition.group, definition.plural
    verbs = ("get", "list", "watch") + (("patch",) if reconciler.finalizer else ())
    return [
        Permission(group=group, resources=(plural,), verbs=verbs),
        Permission(group=group, resources=(f"{plural}/status",), verbs=("patch",)),
    ]


def rule(permission: Permission) -> dict[str, Any]:
    """A permission as a role says it."""
    said: dict[str, Any] = {
        "apiGroups": [permission.group],
        "resources": [*permission.resources],
        "verbs": [*permission.verbs],
    }
    if permission.names:
        said["resourceNames"] = [*permission.names]
    return said


def _own_rules() -> list[dict[str, Any]]:
    """What the operator keeps in its own namespace: its Lease, and the key of its digests."""
    group, resources = "coordination.k8s.io", ("leases",)
    return [
        # RBAC cannot restrict by name what has no name yet.
        rule(Permission(group=group, resources=resources, verbs=("create",))),
        rule(Permission(group=group, resources=resources, verbs=("get", "update"), names=(NAME,))),
        rule(Permission(resources=("secrets",), verbs=("create",))),
    ]


def _to_the_operator(kind: str, name: str) -> dict[str, Any]:
    return {
        "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }
