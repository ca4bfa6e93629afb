"""What the findings of policies mean, after the overrides that the platform allows. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pequod.api import reasons
from pequod.api.graph import Violation
from pequod.base.logs import one_line
from pequod.evaluator import answers

Action = Literal["Enforce", "Warn", "Ignore"]

MOST = 256
"""Findings that a status holds."""
_LONGEST = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """How one policy is to apply, where the platform leaves that to its users."""

    name: str
    action: Action
    parameters: Mapping[str, Any] | None = None


class OverrideRefusedError(Exception):
    """Overrides that the platform does not allow, all of them."""

    reason = reasons.OVERRIDE_REFUSED


def require_allowed(
    policies: Sequence[answers.PolicyVerdict], overrides: Iterable[Override]
) -> None:
    """Refuse overrides of what does not exist or is not to be overridden; names every one."""
    known = {one.name: one for one in policies}
    open_ = sorted(name for name, one in known.items() if one.overridable)
    problems = []
    for override in overrides:
        policy = known.get(override.name)
        if policy is None:
            problems.append(f"there is no policy {override.name}")
        elif not policy.overridable:
            problems.append(f"policy {override.name} cannot be overridden")
    if problems:
        way_out = f"overridable are {', '.join(open_)}" if open_ else "none is overridable"
        raise OverrideRefusedError(f"{'; '.join(problems)}: remove it from policies ({way_out})")


def parameters(overrides: Iterable[Override]) -> dict[str, Mapping[str, Any]]:
    """What overrides set of the parameters of policies."""
    return {one.name: one.parameters for one in overrides if one.parameters is not None}


def findings(
    policies: Sequence[answers.PolicyVerdict], overrides: Iterable[Override] = ()
) -> tuple[Violation, ...]:
    """What policies found, each as bad as the action in force makes it."""
    actions = {one.name: one.action for one in overrides}
    found = []
    for policy in policies:
        action = actions.get(policy.name, policy.action)
        if action == "Ignore":
            continue
        found += [_ruled(one, policy.name, action) for one in policy.violations]
    return tuple(found)


def _ruled(found: answers.Violation, policy: str, action: Action) -> Violation:
    severity: answers.Severity = "Error" if action == "Enforce" else "Warning"
    if found.severity == "Info":
        severity = "Info"
    return told(found, by=f"policy {policy}", severity=severity)


def told(
    found: answers.Violation, *, by: str = "", severity: answers.Severity | None = None
) -> Violation:
    """A finding as a status has it: where, what, by which rule, and where that is written."""
    rule = ", ".join(part for part in (by, found.position) if part)
    message = f"{found.message} ({rule})" if rule else found.message
    return Violation(
        path=one_line(found.path, _LONGEST),
        message=one_line(message, _LONGEST),
        severity=severity or found.severity,
    )


def refuses(found: Iterable[Violation]) -> bool:
    """Whether something among it blocks."""
    return any(one.severity == "Error" for one in found)


def shown(found: Sequence[Violation]) -> tuple[Violation, ...]:
    """As many as a status holds, the worst first."""
    order = {"Error": 0, "Warning": 1, "Info": 2}
    return tuple(sorted(found, key=lambda one: order[one.severity])[:MOST])


def summary(found: Sequence[Violation], most: int = 3) -> str:
    """The findings that block, for a condition."""
    errors = [one for one in found if one.severity == "Error"]
    texts = [f"{one.path}: {one.message}" for one in errors[:most]]
    more = len(errors) - most
    return "; ".join(texts) + (f"; and {more} more, see status.violations" if more > 0 else "")
