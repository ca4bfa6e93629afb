"""Policies that are written in CUE, asked about an input and, once there is one, its graph."""

from collections.abc import Mapping, Sequence
from typing import Any

from pequod.api.graph import Violation
from pequod.evaluator.errors import MOST_TOLD, ModuleError
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
            raise OverrideRefusedError(_refusal(error, given)) from error
    return findings(verdicts, overrides)


def _refusal(error: ModuleError, given: Mapping[str, object]) -> str:
    """Which parameters are wrong, where that is known; without them the policies were sound."""
    wrong = [one for one in error.problems if ".parameters" in one.path]
    if not wrong:
        return f"{error.told}: correct the parameters of {', '.join(sorted(given))} in policies"
    return "; ".join(f"{one.path} {one.message}" for one in wrong[:MOST_TOLD])
