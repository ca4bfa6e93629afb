"""The gitops family: the clusters that applications are delivered to."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pequod.api.meta import (
    Declared,
    Resource,
    SecretKeyReference,
    Spec,
    Status,
    Timestamp,
    column,
    crd,
)

API_VERSION = "ajj.io/v1"

ACKNOWLEDGE_IDENTITY = "pequod.io/acknowledge-identity"
"""Annotation of a Cluster: the UID of the cluster that may take the place of the pinned one."""

SHARED = "pequod.io/shared"
"""Label of a Cluster in the operator's namespace that every namespace may use."""


class ClusterSync(Declared, frozen=True):
    """What may happen on a cluster without somebody asking for it."""

    automated: bool = True
    """Apply new revisions on their own; a sync also needs the application's own policy."""

    prune: bool = True
    """Delete what a new revision no longer holds; also needs the application's own policy."""


class ClusterSpec(Spec, frozen=True):
    """How a cluster is reached, and what it is for."""

    kubeconfig_secret_ref: SecretKeyReference | None = None
    """Secret key with a kubeconfig that holds `server`, `certificate-authority-data`, a token or a
    client certificate, and nothing that runs programs or reads files. Absent: the operator's own
    cluster."""

    environment: Annotated[str, msgspec.Meta(max_length=63)] | None = None
    """What the cluster is for, for example `staging`."""

    labels: Annotated[
        dict[str, Annotated[str, msgspec.Meta(max_length=63)]], msgspec.Meta(max_length=64)
    ] = {}
    """Labels that an application's `clusterSelector` can choose by."""

    sync: ClusterSync = ClusterSync()
    """What may happen on the cluster without somebody asking for it."""

    suspend: bool = False
    """Leave the cluster alone until this is taken back."""


class ClusterStatus(Status):
    """What the last probe found."""

    reachable: bool | None = None
    """Whether the API server answered the last probe; absent until the first one."""

    version: Annotated[str, msgspec.Meta(max_length=63)] | None = None
    """Kubernetes version of the API server."""

    nodes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many nodes the cluster has."""

    identity: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """UID of the namespace `kube-system`, pinned at the first contact: another cluster behind the
    same address is not this one."""

    last_probe_time: Timestamp | None = None
    """When the cluster was last asked, to within five minutes while nothing changes."""


@crd(
    API_VERSION,
    plural="clusters",
    columns=(
        column("Environment", ".spec.environment"),
        column("Version", ".status.version"),
        column("Reachable", ".status.reachable", type="boolean"),
    ),
    conditions=("Reachable", "Authorized"),
)
class Cluster(Resource[ClusterSpec, ClusterStatus]):
    """A Kubernetes cluster that applications and graphs may be applied to."""
