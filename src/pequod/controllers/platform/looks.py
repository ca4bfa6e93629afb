"""Whether what a graph says was seen lately.

A status stays as it was while nobody looks: the operator was away, or the API server. Before
something is given up because of a status, the graph is asked to be looked at once more.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.storing import GRAPHS
from pequod.kube.cache import Cache
from pequod.kube.client import Client
from pequod.kube.objects import Key
from pequod.runtime.controller import REQUESTED


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a graph was asked, and as what it was then."""

    uid: str
    generation: int
    question: str


class Looks:
    """The looks at graphs that their sources wait for."""

    def __init__(self, client: Client, graphs: Cache[ResourceGraph]) -> None:
        self._client = client
        self._graphs = graphs
        self._asked: dict[Key, _Asked] = {}

    async def taken(self, key: Key, graph: ResourceGraph) -> bool:
        """Whether the graph of a source was looked at since that was asked for; asks if need be.

        The answer changes the graph's status, which wakes the source.
        """
        asked = self._asked.get(key)
        if asked is None or not _is_pending(asked, graph):
            self._asked[key] = await self._ask(graph)
            return False
        current = graph.status.observed_generation == graph.metadata.generation
        return current and graph.status.last_handled_reconcile_at == asked.question

    def forget(self, key: Key) -> None:
        """Nothing depends on what the graph of a source says."""
        self._asked.pop(key, None)

    def clear(self) -> None:
        """Another replica leads, and asks anew."""
        self._asked.clear()

    async def _ask(self, graph: ResourceGraph) -> _Asked:
        metadata = graph.metadata
        question = datetime.now(UTC).isoformat()
        body = {"metadata": {"uid": metadata.uid, "annotations": {REQUESTED: question}}}
        answer = await self._client.patch(GRAPHS, metadata.name, body, namespace=metadata.namespace)
        # To whoever executes graphs, this is news.
        self._graphs.observe(answer)
        return _Asked(metadata.uid, metadata.generation, question)


def _is_pending(asked: _Asked, graph: ResourceGraph) -> bool:
    """Whether a question is about the graph as it is, and nobody has put another one over it."""
    same = (asked.uid, asked.generation) == (graph.metadata.uid, graph.metadata.generation)
    return same and graph.metadata.annotations.get(REQUESTED) == asked.question
