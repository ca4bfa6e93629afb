"""What the operator may do with the objects of graphs.

Nobody can declare it: which kinds a graph holds is up to the modules of a platform. So the roles
are put together by the cluster from whichever ClusterRoles carry a label; ours name built-in kinds.
"""

from typing import Any

from pequod.crd.rbac import cluster_role, cluster_role_binding, rule
from pequod.runtime.reconciler import Permission
from pequod.settings import NAME

WATCH = f"{NAME}-children-watch"
WRITE = f"{NAME}-children-write"
TO_WATCH = "rbac.pequod.io/aggregate-to-watch"
TO_WRITE = "rbac.pequod.io/aggregate-to-write"

_WATCH_VERBS = ("get", "list", "watch")
_WRITE_VERBS = ("get", "create", "patch", "delete")

ABOUT = f"""\
What the operator may do with the objects of graphs; operator.yaml has everything else.

{WATCH}: what it may read, for the caches that tell how the objects are.
{WRITE}: what it may write with its own account (`--identity confined`).

The cluster puts both roles together from every ClusterRole that carries their label. The defaults
name built-in kinds only. To let graphs hold kinds of yours, label ClusterRoles that name them:

  {TO_WATCH}: "true"    with the verbs {", ".join(_WATCH_VERBS)}
  {TO_WRITE}: "true"    with the verbs {", ".join(_WRITE_VERBS)}

With `--identity impersonate` the operator writes in the name of accounts of the tenants, and needs
no rights of its own for it: delete the ClusterRoleBinding {WRITE}.
"""

_WRITTEN: dict[str, tuple[str, ...]] = {
    "": (
        "configmaps",
        "limitranges",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
    ),
    # Without controllerrevisions: those of a namespace are the history of its controllers, and of
    # our own graphs.
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
}

_ONLY_READ: dict[str, tuple[str, ...]] = {
    "": ("namespaces", "persistentvolumes"),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "rbac.authorization.k8s.io": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    "scheduling.k8s.io": ("priorityclasses",),
    "storage.k8s.io": ("storageclasses",),
}
"""What reaches beyond a namespace, or gives rights: a graph may refer to it, and an account of the
tenant's may write it, but never the operator's own."""


def children_rbac() -> list[dict[str, Any]]:
    """The two roles, the defaults that they are put together from, and who has them."""
    read = {
        group: _WRITTEN.get(group, ()) + _ONLY_READ.get(group, ())
        for group in _WRITTEN | _ONLY_READ
    }
    return [
        *_aggregated(WATCH, TO_WATCH, read, _WATCH_VERBS),
        *_aggregated(WRITE, TO_WRITE, _WRITTEN, _WRITE_VERBS),
    ]


def _aggregated(
    name: str, label: str, resources: dict[str, tuple[str, ...]], verbs: tuple[str, ...]
) -> list[dict[str, Any]]:
    # The role must not say its rules, not even that there are none: they are its controller's, and
    # whoever applies this file again would take them away for a moment.
    labels = {label: "true"}
    role = cluster_role(name) | {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]}
    }
    permissions = (
        Permission(group=group, resources=names, verbs=verbs) for group, names in resources.items()
    )
    defaults = cluster_role(f"{name}-defaults", labels=labels) | {
        "rules": [rule(permission) for permission in permissions]
    }
    return [role, defaults, cluster_role_binding(name)]
