"""The steps of a progressive rollout, as the platform and the gitops family both write them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pequod.api.meta import Declared, Duration
from pequod.api.schema import ATOMIC_LIST, one_of


class Pause(Declared, frozen=True):
    """A stop on the way."""

    duration: Duration | None = None
    """How long to stop; until somebody resumes when absent."""


class AnalysisTemplate(Declared, frozen=True):
    """One analysis to run."""

    template_name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    """Name of the AnalysisTemplate."""

    cluster_scope: bool = False
    """Whether it is a ClusterAnalysisTemplate."""


class Analysis(Declared, frozen=True):
    """Measurements that decide whether the rollout goes on."""

    templates: Annotated[
        tuple[AnalysisTemplate, ...], ATOMIC_LIST, msgspec.Meta(min_length=1, max_length=16)
    ]
    """The analyses to run; all must succeed."""


class Step(Declared, frozen=True):
    """One step of a rollout: a weight, a pause or an analysis."""

    rules = (one_of("setWeight", "pause", "analysis", what="a step"),)

    set_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """Send this percentage of the traffic to the new revision."""

    pause: Pause | None = None
    """Stop here."""

    analysis: Analysis | None = None
    """Measure here."""
