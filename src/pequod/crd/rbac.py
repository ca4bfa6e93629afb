"""What the operator may do: exactly what its controllers declare."""

from collections.abc import Iterable
from typing import Any

from pequod.operator import NAME, NAMESPACE, RECONCILERS
from pequod.runtime.reconciler import Permission, Reconciler

_API = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/name": "pequod", "app.kubernetes.io/part-of": "pequod"}


def operator_rbac() -> list[dict[str, Any]]:
    """The operator's namespace, its account, and everything that the account may do."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return [
        _object("v1", "Namespace", name=NAMESPACE),
        _object("v1", "ServiceAccount", name=NAME, namespace=NAMESPACE),
        _object(f"{_API}/v1", "ClusterRole", name=NAME) | {"rules": rules(RECONCILERS)},
        _object(f"{_API}/v1", "ClusterRoleBinding", name=NAME)
        | {"roleRef": _role("ClusterRole"), "subjects": [subject]},
        _object(f"{_API}/v1", "Role", name=NAME, namespace=NAMESPACE) | {"rules": _lease_rules()},
        _object(f"{_API}/v1", "RoleBinding", name=NAME, namespace=NAMESPACE)
        | {"roleRef": _role("Role"), "subjects": [subject]},
    ]


def rules(reconcilers: Iterable[type[Reconciler[Any]]]) -> list[dict[str, Any]]:
    """The rules of a ClusterRole for some reconcilers."""
    permissions = [Permission(group="events.k8s.io", resources=("events",), verbs=_EVENTS)]
    for reconciler in reconcilers:
        permissions += [*own_kind(reconciler), *reconciler.permissions]
    return [_rule(permission) for permission in dict.fromkeys(permissions)]


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


def _lease_rules() -> list[dict[str, Any]]:
    group, resources = "coordination.k8s.io", ("leases",)
    return [
        # RBAC cannot restrict by name what has no name yet.
        _rule(Permission(group=group, resources=resources, verbs=("create",))),
        _rule(Permission(group=group, resources=resources, verbs=("get", "update"), names=(NAME,))),
    ]


def _rule(permission: Permission) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "apiGroups": [permission.group],
        "resources": [*permission.resources],
        "verbs": [*permission.verbs],
    }
    if permission.names:
        rule["resourceNames"] = [*permission.names]
    return rule


def _role(kind: str) -> dict[str, str]:
    return {"apiGroup": _API, "kind": kind, "name": NAME}


def _object(
    api_version: str, kind: str, *, name: str, namespace: str | None = None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(_LABELS)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
