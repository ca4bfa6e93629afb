"""How far a graph may reach when it is the operator's own account that acts for it.

Where an account is impersonated, RBAC decides and nothing of this applies, except that nobody
reaches into the operator's namespace from outside.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pequod.api import reasons
from pequod.api.graph import Node
from pequod.graph.desired import Desired
from pequod.graph.record import Problem
from pequod.kube.kinds import Kind

IdentityMode = Literal["confined", "impersonate", "trusted"]

PRIVILEGED_GROUPS = frozenset(
    {
        "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io",
        "certificates.k8s.io",
        "apiregistration.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    }
)
_OUR_GROUPS = frozenset({"platform.pequod.io", "ajj.io"})
"""Kinds that may name an account to act as, like pods do."""
_DEFAULT_ACCOUNT = "default"
_ACCOUNT_OF_TOKEN = "kubernetes.io/service-account.name"  # noqa: S105 -- an annotation
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 -- a type
_POD_SPECS = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the objects of one graph may be."""

    namespace: str
    """Of the graph."""
    confined: bool
    operator_namespace: str
    accounts: Mapping[str, str] = field(default_factory=dict)
    """Service accounts that the graph makes itself, and the nodes that do."""

    def problems(self, wanted: Desired) -> Iterator[str]:
        """Why an object is out of reach."""
        ref = wanted.ref
        place = ref.name if (ref.group, ref.kind) == ("", "Namespace") else ref.namespace
        if place == self.operator_namespace != self.namespace:
            yield f"{ref} would be in the operator's namespace, which is closed to graphs"
        elif self.confined:
            yield from self._confined(wanted)

    def maker(self, wanted: Desired) -> str:
        """The node that makes the account that an object runs as; empty for no such node.

        The object has to wait for it: an account of that name may be somebody else's until then.
        """
        return self.accounts.get(_account(wanted.body, wanted.kind), "") if self.confined else ""

    def against_joining(self, found: Desired, *, mirrored: bool = False) -> Problem | None:
        """Why an object that exists must not become a graph's of the operator's own account.

        What an object already is reaches as far as what a node makes of it. Pods that run as an
        account take its being a node for the proof that the graph has made it.
        """
        if not self.confined:
            return None
        ref = found.ref
        if (ref.group, ref.kind) == ("", "ServiceAccount"):
            text = (
                f"{ref} exists already and may hold rights that the graph does not have: give the "
                "node another name, or name a serviceAccountName that may adopt it"
            )
            return Problem(reasons.OUT_OF_REACH, text)
        if mirrored:
            return None
        # It runs already: as an account that is not the graph's, whoever makes one of that name.
        for text in replace(self, accounts={}).problems(found):
            return Problem(reasons.OUT_OF_REACH, text)
        return None

    def _confined(self, wanted: Desired) -> Iterator[str]:
        ref, kind = wanted.ref, wanted.kind
        way_out = "name a serviceAccountName that may do it"
        if not kind.namespaced:
            yield f"{ref} is cluster-scoped: {way_out}"
        elif ref.namespace != self.namespace:
            yield f"{ref} is outside of the namespace {self.namespace}: {way_out}"
        elif kind.group in PRIVILEGED_GROUPS:
            yield f"{ref} is of the group {kind.group}, which grants rights: {way_out}"
        else:
            if kind.group in _OUR_GROUPS and _part(wanted.body, ("spec", "sourceRef")):
                yield f"{ref} has a sourceRef: only front ends write graphs that have a source"
            account = _account(wanted.body, kind)
            if account not in {_DEFAULT_ACCOUNT, *self.accounts}:
                yield (
                    f"{ref} would run as ServiceAccount {account}, which the graph does not make: "
                    f"make it a node, or {way_out}"
                )


def made_accounts(nodes: Iterable[Node], namespace: str) -> dict[str, str]:
    """The service accounts that nodes make in a namespace, and by which node."""
    return {
        str(node.object["metadata"]["name"]): node.id
        for node in nodes
        if (node.object.get("apiVersion"), node.object.get("kind")) == ("v1", "ServiceAccount")
        and node.apply_policy.mode in {"Apply", "Create"}
        and node.object["metadata"].get("namespace", namespace) == namespace
    }


def _account(body: Mapping[str, Any], kind: Kind) -> str:
    """The account that an object gets to use: as a pod, or as a token."""
    if (kind.group, kind.kind) == ("", "Secret") and body.get("type") == _TOKEN:
        return str(body["metadata"].get("annotations", {}).get(_ACCOUNT_OF_TOKEN, ""))
    path = _POD_SPECS.get((kind.group, kind.kind))
    if kind.group in _OUR_GROUPS:
        path = ("spec",)
    spec = _part(body, path) if path else None
    if not isinstance(spec, dict):
        return _DEFAULT_ACCOUNT
    said = (spec.get("serviceAccountName"), spec.get("serviceAccount"))
    named = {str(name) for name in said if name} - {_DEFAULT_ACCOUNT}
    return ", ".join(sorted(named)) or _DEFAULT_ACCOUNT


def _part(body: Mapping[str, Any], path: tuple[str, ...]) -> Any:  # noqa: ANN401 -- any JSON
    part: Any = body
    for name in path:
        part = part.get(name) if isinstance(part, dict) else None
    return part
