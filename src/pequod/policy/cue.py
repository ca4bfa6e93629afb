"""Policies that are written in CUE, asked about an input and, once there is one, its graph."""

from collections.abc import Mapping, Sequence
from typing import Any

from pequod.api.graph import Violation
from pequod.evaluator.errors import ModuleError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.policy.rulings import (
    Override,
    OverrideRefusedError,
    findings,
    parameters,
    require_allowed,
)


async def judged(
    evaluator: Evaluator,
    policies: Tree,
    subject: Mapping[str, Any],
    overrides: Sequence[Override] = (),
    *,
    owner: str = "",
) -> tuple[Violation, ...]:
    """What a package of policies finds; raises OverrideRefusedError."""
    verdicts = await evaluator.policies(policies, subject, owner=owner)
    require_allowed(verdicts, overrides)
    given = parameters(overrides)
    if given:
        try:
            verdicts = await evaluator.policies(policies, subject, parameters=given, owner=owner)
        except ModuleError as error:
            names = ", ".join(sorted(given))
            raise OverrideRefusedError(
                f"the parameters of {names} are not accepted: {error}"
            ) from error
    return findings(verdicts, overrides)
