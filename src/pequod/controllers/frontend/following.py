"""What a source says of its graph: the graph's own words."""

from pequod.api import reasons
from pequod.api.meta import Condition
from pequod.api.platform import ResourceGraph
from pequod.api.reasons import REASONS, Reason
from pequod.runtime.verdicts import Waiting


def condition(graph: ResourceGraph, type_: str) -> Condition | None:
    """A condition of a graph that speaks of its present spec."""
    for one in graph.status.conditions:
        current = one.observed_generation in {None, graph.metadata.generation}
        if one.type == type_ and current:
            return one
    return None


def is_ready(graph: ResourceGraph) -> bool:
    """Whether everything that a graph asks for now is there and healthy."""
    ready = condition(graph, "Ready")
    current = graph.status.observed_generation == graph.metadata.generation
    return current and ready is not None and ready.status == "True"


def is_stalled(graph: ResourceGraph) -> bool:
    """Whether only a change of the graph can help it."""
    stalled = condition(graph, "Stalled")
    return stalled is not None and stalled.status == "True"


def executed(graph: ResourceGraph, *, after: float | None = None) -> str:
    """What `Executed` says; raises a verdict while the graph is not Ready.

    Its changes wake the source; `after` is when to look at it all the same.
    """
    name = f"ResourceGraph {graph.metadata.name}"
    ready = condition(graph, "Ready")
    if is_ready(graph) and ready is not None:
        return ready.message
    if ready is None or graph.status.observed_generation != graph.metadata.generation:
        raise Waiting(reasons.EXECUTING, f"{name} has not been looked at yet", after=after)
    reason = REASONS.get(ready.reason) or Reason(ready.reason, "What the graph says.")
    on_its_way = reason in reasons.ON_THE_WAY
    raise Waiting(
        reasons.EXECUTING if on_its_way else reason,
        f"{name}: {ready.message}",
        after=after,
    )
