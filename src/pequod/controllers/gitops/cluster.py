"""Cluster: is it there, is it still the same one, and may we use it?"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from pequod.api import reasons
from pequod.api.gitops import ACKNOWLEDGE_IDENTITY, Cluster, ClusterStatus
from pequod.base.backoff import spread
from pequod.base.durations import words
from pequod.controllers.gitops.connection import Connections
from pequod.controllers.gitops.probe import Answer, Found, Probe
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.verdicts import Result, Waiting

SLOW = 3.0
"""Seconds after which an answer is worth a remark."""
FRESH = timedelta(minutes=5)
"""How old `lastProbeTime` may grow while nothing else changes."""
SOON = 15.0
"""Seconds after which a cluster that has just failed is asked again."""
RARELY = 300.0
"""Seconds after which one is asked again that has failed for long."""


class ClusterReconciler(Reconciler[Cluster]):
    """Keeps what is known of a cluster up to date."""

    kind = Cluster
    permissions = (
        Permission(resources=("secrets",), verbs=("get", "list", "watch")),
        Permission(resources=("namespaces",), verbs=("get",), names=("kube-system",)),
        Permission(resources=("nodes",), verbs=("list",)),
    )
    concurrency = 64

    def __init__(self, connections: Connections, probe: Probe, *, interval: float) -> None:
        self._connections = connections
        self._probe = probe
        self._interval = interval

    async def reconcile(self, cluster: Cluster, ctx: Context) -> Result:
        """Ask the cluster who it is."""
        with _asked_again(cluster, ctx):
            with ctx.step("Reachable") as reachable:
                before, cluster.status.reachable = cluster.status.reachable, None
                client = await self._connections.client(cluster, ctx)
                with _noted(cluster.status, before, ctx):
                    answer = await self._probe.answer(client)
                reachable.reason, reachable.message = _remark(answer)

            with ctx.step("Authorized") as authorized:
                found = await self._probe.identity(client)
                self._connections.doubt(ctx.key)
                _require_same(cluster, found)
                self._connections.confirm(ctx.key)
                authorized.message = f"is the cluster {found.identity}"

        _note(cluster.status, answer, found)
        return Result(message=_summary(cluster.status), after=spread(self._interval))

    def forget(self, key: Key) -> None:
        """Close the connection to a cluster that nobody describes any more."""
        self._connections.forget(key)

    def reset(self) -> None:
        """Close every connection: another replica leads."""
        self._connections.forget_all()


@contextmanager
def _asked_again(cluster: Cluster, ctx: Context) -> Iterator[None]:
    """Ask a cluster that waits for something again: soon at first, rarely when it takes long."""
    try:
        yield
    except Waiting as verdict:
        ready = (c for c in cluster.status.conditions if c.type == "Ready" and c.status == "False")
        since = next((condition.last_transition_time for condition in ready), ctx.now)
        lasted = (ctx.now - since).total_seconds()
        verdict.after = spread(min(max(SOON, lasted / 2), RARELY), 0.3)
        raise


@contextmanager
def _noted(status: ClusterStatus, before: bool | None, ctx: Context) -> Iterator[None]:  # noqa: FBT001 -- a value, no switch
    """Note whether the cluster answered, and when; the time alone is not worth a write."""
    status.reachable = False
    try:
        yield
        status.reachable = True
    finally:
        last = status.last_probe_time
        if status.reachable != before or last is None or abs(ctx.now - last) >= FRESH:
            status.last_probe_time = ctx.now


def _remark(answer: Answer) -> tuple[reasons.Reason, str]:
    if answer.took > SLOW:
        return reasons.SLOW, f"the API server takes more than {words(SLOW)} to answer"
    return reasons.SUCCEEDED, "the API server answers"


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
    )


def _note(status: ClusterStatus, answer: Answer, found: Found) -> None:
    status.version = answer.version or status.version
    status.nodes = found.nodes
    status.identity = found.identity


def _summary(status: ClusterStatus) -> str:
    nodes = "an unknown number of nodes"
    if status.nodes is not None:
        nodes = "1 node" if status.nodes == 1 else f"{status.nodes} nodes"
    return f"Kubernetes {status.version or 'of unknown version'} with {nodes}"
