"""What the findings of policies come to mean."""

import pytest

from pequod.evaluator.answers import PolicyVerdict, Violation
from pequod.policy.rulings import (
    MOST,
    Override,
    OverrideRefusedError,
    findings,
    parameters,
    refuses,
    require_allowed,
    shown,
    summary,
)

FOUND = Violation(path="nodes.web.spec", message="asks for too much", position="limits.cue:3:1")
HINT = Violation(path="input.env", message="is long", severity="Info")


def policy(name: str, action: str = "Enforce", **more: object) -> PolicyVerdict:
    return PolicyVerdict(name=name, action=action, violations=(FOUND, HINT), **more)  # type: ignore[arg-type]


def test_the_action_of_a_policy_says_how_bad_its_findings_are() -> None:
    enforced = findings([policy("limits")])
    assert [one.severity for one in enforced] == ["Error", "Info"]
    assert enforced[0].message == "asks for too much (policy limits, limits.cue:3:1)"
    assert [one.severity for one in findings([policy("limits", "Warn")])] == ["Warning", "Info"]
    assert findings([policy("limits", "Ignore")]) == ()


@pytest.mark.parametrize(
    ("action", "severities"),
    [("Enforce", ["Error", "Info"]), ("Warn", ["Warning", "Info"]), ("Ignore", [])],
)
def test_an_override_puts_its_action_in_the_place_of_the_policys(
    action: str, severities: list[str]
) -> None:
    override = Override(name="limits", action=action)  # type: ignore[arg-type]
    for own in ("Enforce", "Warn"):
        found = findings([policy("limits", own, overridable=True)], [override])
        assert [one.severity for one in found] == severities


def test_what_does_not_exist_or_is_not_to_be_overridden_is_refused_all_at_once() -> None:
    known = [policy("security"), policy("limits", overridable=True)]
    wrong = [Override(name=name, action="Warn") for name in ("security", "nothing", "limits")]
    with pytest.raises(OverrideRefusedError) as refused:
        require_allowed(known, wrong)
    text = str(refused.value)
    assert "policy security cannot be overridden" in text
    assert "there is no policy nothing" in text
    assert "overridable are limits" in text
    require_allowed(known, wrong[2:])


def test_parameters_are_those_of_overrides_that_set_some() -> None:
    overrides = [
        Override(name="limits", action="Enforce", parameters={"max": 3}),
        Override(name="tags", action="Warn"),
    ]
    assert parameters(overrides) == {"limits": {"max": 3}}


def test_the_worst_comes_first_and_a_status_holds_no_more_than_it_may() -> None:
    many = findings([policy("limits", "Warn")] * MOST) + findings([policy("limits")])
    assert len(shown(many)) == MOST
    assert shown(many)[0].severity == "Error"
    assert refuses(many)
    assert not refuses(findings([policy("limits", "Warn")]))


def test_a_summary_names_what_blocks_and_counts_the_rest() -> None:
    text = summary(findings([policy("limits")] * 5))
    assert text.count("nodes.web.spec") == 3
    assert text.endswith("and 2 more, see status.violations")
