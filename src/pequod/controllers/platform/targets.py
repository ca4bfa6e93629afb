"""The clusters that graphs are executed on: their clients, their kinds, their live objects."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prometheus_client import Gauge

from pequod.api import reasons
from pequod.api.gitops import SHARED, Cluster
from pequod.api.platform import ResourceGraph
from pequod.base.tasks import Background
from pequod.graph.access import Access
from pequod.graph.children import Children, Watched
from pequod.graph.digests import Digests
from pequod.kube.cache import Projection
from pequod.kube.caches import Caches, Share
from pequod.kube.client import Client
from pequod.kube.clusters import Clusters
from pequod.kube.discovery import Discovery
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import NAMESPACES, Kind
from pequod.kube.objects import Key, Named
from pequod.runtime.verdicts import Waiting

_managed = Gauge("pequod_resources_managed", "Live objects of graphs.")

AGAIN = 15.0
"""Seconds after which a Cluster that cannot be used yet is looked at again."""


@dataclass(frozen=True, slots=True)
class Target:
    """One cluster, as the engine needs it; the client is the operator's own there."""

    name: str
    client: Client
    caches: Caches
    discovery: Discovery
    children: Children
    access: Access
    identity: str = ""
    """Of the cluster; empty for the operator's own."""

    async def require_same(self) -> None:
        """Be sure that the cluster is still the one that it was when it was last probed."""
        if not self.identity:
            return
        found = await self.client.get(NAMESPACES, "kube-system", type=Named)
        if found.metadata.uid != self.identity:
            raise Waiting(
                reasons.IDENTITY_CHANGED,
                f"another cluster answers as Cluster {self.name}; nothing is written to it",
                after=AGAIN,
            )

    async def watched(self, kinds: frozenset[Kind]) -> Watched:
        """Which of the kinds can be watched; one that is gone is looked for anew."""
        found = await self.children.watched(kinds)
        if any(isinstance(error, NotFoundError) for error in found.failed.values()):
            self.discovery.invalidate()
        return found


def _is_away(cluster: Cluster) -> bool:
    """Whether a cluster is known not to answer: graphs need not find that out one by one."""
    return any(
        condition.type == "Reachable" and condition.status == "False"
        for condition in cluster.status.conditions
    )


class Targets:
    """Every cluster that graphs name, for as long as its connection lasts."""

    def __init__(
        self, caches: Caches, clusters: Clusters, digests: Digests, *, namespace: str
    ) -> None:
        self._caches = caches
        self._clusters = clusters
        self._digests = digests
        self._namespace = namespace
        self._targets: dict[Key | None, Target] = {}
        self._background = Background()
        self._known: Share[Cluster] | None = None
        self.wake: Callable[[str], None] = lambda _graph: None
        """Wakes the graph of a UID; the reconciler says how."""
        self.wake_cluster: Callable[[Key], None] = lambda _key: None
        """Wakes the graphs of a cluster; the reconciler says how."""
        clusters.listen(self._reconnected)
        _managed.set_function(self.count)

    def count(self) -> int:
        """How many live objects of graphs are known."""
        return sum(len(target.children) for target in self._targets.values())

    async def of(self, graph: ResourceGraph) -> Target:
        """The cluster that a graph names; raises a verdict while it cannot be used."""
        reference = graph.spec.cluster_ref
        if reference is None:
            return self._target(None, self._caches.client)
        key, cluster = await self._found(graph.metadata.namespace or "", reference.name)
        if cluster is None:
            raise Waiting(
                reasons.CLUSTER_NOT_READY,
                f"Cluster {key} does not exist; create it, or name another one in spec.clusterRef",
                after=AGAIN,
            )
        identity = cluster.status.identity or ""
        known = graph.status.cluster
        if known and identity and known != identity:
            raise Waiting(
                reasons.IDENTITY_CHANGED,
                f"Cluster {key} is another cluster ({identity}) than the one that the objects of "
                f"the graph are on ({known}); name that one, or delete the graph",
                after=AGAIN,
            )
        if cluster.spec.kubeconfig_secret_ref is None:
            return replace(self._target(None, self._caches.client), identity=identity)
        client = self._clusters.confirmed(key)
        if client is None or not identity or _is_away(cluster):
            raise Waiting(
                reasons.CLUSTER_NOT_READY,
                f"Cluster {key} cannot be used yet; see its conditions",
                after=AGAIN,
            )
        return replace(self._target(key, client), identity=identity)

    async def _found(self, namespace: str, name: str) -> tuple[Key, Cluster | None]:
        """The Cluster of a name: in the graph's namespace, or one that is shared with all."""
        if self._known is None:
            self._known = self._caches.share(Kind.of(Cluster), Projection(Cluster))
        cache = self._known.cache
        await cache.until_synced(20.0)
        own, shared = Key(namespace, name), Key(self._namespace, name)
        found = cache.get(own)
        if isinstance(found, Cluster):
            return own, found
        found = cache.get(shared)
        if isinstance(found, Cluster) and found.metadata.labels.get(SHARED) == "true":
            return shared, found
        return own, None

    def _target(self, key: Key | None, client: Client) -> Target:
        known = self._targets.get(key)
        if known is not None and known.client is client:
            return known
        if known is not None:
            self._end(known)
        caches = self._caches if key is None else Caches(client)
        made = self._targets[key] = Target(
            name=str(key or ""),
            client=client,
            caches=caches,
            discovery=Discovery(client),
            children=Children(caches, self._digests, self._woken),
            access=Access(),
        )
        return made

    def _woken(self, graph: str) -> None:
        self.wake(graph)

    def _reconnected(self, key: Key) -> None:
        """Another connection leads to a cluster: what the old one told is told no longer."""
        known = self._targets.pop(key, None)
        if known is not None:
            self._end(known)
        self.wake_cluster(key)

    def forget(self, graph: str) -> None:
        """A graph is gone: nothing is watched for it any more."""
        for target in self._targets.values():
            target.children.need(graph, frozenset())

    def reset(self) -> None:
        """Another replica leads: watch nothing."""
        for target in self._targets.values():
            self._end(target)
        self._targets.clear()

    def _end(self, target: Target) -> None:
        target.children.close()
        if target.caches is not self._caches:
            self._background.start(target.caches.close(), name="close caches")

    async def close(self) -> None:
        """End everything."""
        self.reset()
        await self._background.close()
