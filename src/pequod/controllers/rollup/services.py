"""What keeps the services of a chain from being what they should be, all in all. Pure."""

from collections.abc import Sequence

from pequod.api import reasons
from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend import following
from pequod.controllers.rollup.judging import Judgement
from pequod.controllers.rollup.reporting import Judgements
from pequod.controllers.rollup.upgrading import Stage
from pequod.runtime.verdicts import Waiting

AGAIN = 5.0


def what_is_missing(
    graph: ResourceGraph, stage: Stage | None, judged: Judgements
) -> Waiting | None:
    """A verdict that names every program that is not well; None when all are."""
    bad = [(one, found) for one, found in judged.items() if not found.ok]
    if stage is not None and stage.waits:
        return Waiting(
            reasons.UPGRADING, "; ".join([f"waits until {stage.waits}", *_told(bad)]), after=AGAIN
        )
    if bad:
        return Waiting(bad[0][1].reason, "; ".join(_told(bad)))
    try:
        following.executed(graph)
    except Waiting as problem:
        return problem
    return None


def _told(bad: Sequence[tuple[str, Judgement]]) -> list[str]:
    return [f"op-{one}: {found.message}" for one, found in bad]
