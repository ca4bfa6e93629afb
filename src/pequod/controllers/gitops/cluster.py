"""Cluster: is it there, is it still the same one, and may we use it?"""

from datetime import timedelta

from pequod.api import reasons
from pequod.api.gitops import ACKNOWLEDGE_IDENTITY, Cluster, ClusterStatus
from pequod.base.backoff import spread
from pequod.base.durations import words
from pequod.controllers.gitops.connection import Connections
from pequod.controllers.gitops.probe import Found, Probe
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.verdicts import Result, Waiting

SLOW = 3.0
"""Seconds after which an answer is worth a remark."""
FRESH = timedelta(minutes=5)
"""How old `lastProbeTime` may grow while nothing else changes."""


class ClusterReconciler(Reconciler[Cluster]):
    """Keeps what is known of a cluster up to date."""

    kind = Cluster
    permissions = (
        Permission(resources=("secrets",), verbs=("get", "list", "watch")),
        Permission(resources=("namespaces",), verbs=("get",), names=("kube-system",)),
        Permission(resources=("nodes",), verbs=("list",)),
    )
    concurrency = 16

    def __init__(self, connections: Connections, probe: Probe, *, interval: float) -> None:
        self._connections = connections
        self._probe = probe
        self._interval = interval

    async def reconcile(self, cluster: Cluster, ctx: Context) -> Result:
        """Ask the cluster who it is."""
        status = cluster.status
        with ctx.step("Reachable") as reachable:
            client = await self._connections.client(cluster, ctx)
            answer = await self._probe.version(client, status)
            reachable.message = "the API server answers"
            if answer.took > SLOW:
                reachable.reason = reasons.SLOW
                reachable.message = f"the API server takes more than {words(SLOW)} to answer"

        with ctx.step("Authorized") as authorized:
            found = await self._probe.identity(client, cluster)
            _require_same(cluster, found)
            authorized.message = f"is the cluster {found.identity}"

        _note(status, found, ctx)
        return Result(message=_summary(status), after=spread(self._interval))

    def forget(self, key: Key) -> None:
        """Close the connection to a cluster that nobody describes any more."""
        self._connections.forget(key)


def _require_same(cluster: Cluster, found: Found) -> None:
    """Refuse another cluster than the one that was registered, until somebody says it is meant."""
    pinned = cluster.status.identity
    acknowledged = cluster.metadata.annotations.get(ACKNOWLEDGE_IDENTITY)
    if pinned in {None, found.identity} or acknowledged == found.identity:
        return
    place = f"-n {cluster.metadata.namespace} {cluster.metadata.name}"
    raise Waiting(
        reasons.IDENTITY_CHANGED,
        f"another cluster answers at this address: registered was {pinned}, found was "
        f"{found.identity}; if that is meant, run `kubectl annotate --overwrite "
        f"clusters.ajj.io {place} {ACKNOWLEDGE_IDENTITY}={found.identity}`",
        after=60.0,
    )


def _note(status: ClusterStatus, found: Found, ctx: Context) -> None:
    """Write down what was found; the time alone is not worth a write."""
    before = (status.reachable, status.version, status.nodes, status.identity)
    status.reachable = True
    status.version = found.version or status.version
    status.nodes = found.nodes
    status.identity = found.identity
    changed = before != (status.reachable, status.version, status.nodes, status.identity)
    last = status.last_probe_time
    if changed or last is None or abs(ctx.now - last) >= FRESH:
        status.last_probe_time = ctx.now


def _summary(status: ClusterStatus) -> str:
    nodes = "an unknown number of nodes"
    if status.nodes is not None:
        nodes = "1 node" if status.nodes == 1 else f"{status.nodes} nodes"
    return f"Kubernetes {status.version or 'of unknown version'} with {nodes}"
