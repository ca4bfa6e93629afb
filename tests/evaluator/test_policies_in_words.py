"""What policies find names the rule that found it, and what is wrong with an override is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import evaluators
from pequod.api.graph import Violation
from pequod.evaluator.errors import ModuleError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.policy.cue import judged
from pequod.policy.rulings import Override, OverrideRefusedError, summary

SHIPPED = Path(__file__).parents[2] / "modules/policy"
CONTEXT = {"name": "shop", "namespace": "team"}
WEB = {
    "id": "web",
    "object": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1000,
            "template": {"spec": {"containers": [{"name": "a", "image": "nginx:latest"}]}},
        },
    },
}
SUBJECT = {"input": {}, "context": CONTEXT, "graph": {"nodes": [WEB]}}


async def found(evaluator: Evaluator, tree: Tree) -> tuple[Violation, ...]:
    return await judged(evaluator, tree, SUBJECT)


async def refused(evaluator: Evaluator, parameters: Mapping[str, Any]) -> str:
    override = Override(name="resource-limits", action="Enforce", parameters=parameters)
    with pytest.raises(OverrideRefusedError) as caught:
        await judged(evaluator, Tree(root=SHIPPED), SUBJECT, [override])
    return str(caught.value)


def line_of(message: str) -> str:
    """The line that a finding names as its rule's."""
    name, line, _ = message.rpartition(", ")[2].removesuffix(")").split(":")
    return (SHIPPED / name).read_text().splitlines()[int(line) - 1]


async def test_each_finding_names_the_line_of_its_own_rule(evaluator: Evaluator) -> None:
    rules = {
        "replica-limits": "must be a number of at most",
        "image-tags": "moves: name a version or a digest",
        "security": "must hold ALL",
    }
    for policy, text in rules.items():
        [finding] = [
            one
            for one in await found(evaluator, Tree(root=SHIPPED))
            if f"(policy {policy}, " in one.message and text in one.message
        ]
        assert text in line_of(finding.message), finding


async def test_no_finding_names_the_template_of_all_policies(evaluator: Evaluator) -> None:
    findings = await found(evaluator, Tree(root=SHIPPED))
    assert len(findings) > 5
    assert not [one for one in findings if "policy.cue" in one.message]


async def test_a_policy_without_a_template_names_its_own_line(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = 'package p\npolicies: mine: violations: [{\n\tpath: "a"\n\tmessage: "is wrong"\n}]\n'
    tree = Tree(root=evaluators.write(tmp_path, {"p.cue": text}))
    assert [one.message for one in await found(evaluator, tree)] == [
        "is wrong (policy mine, p.cue:4:2)"
    ]


async def test_a_misspelt_parameter_is_named_with_the_known_ones(evaluator: Evaluator) -> None:
    assert await refused(evaluator, {"maxMemoryy": "1Gi"}) == (
        "policies.resource-limits.parameters.maxMemoryy is not known here: did you mean maxMemory? "
        "Known are maxCpu, maxMemory"
    )


async def test_all_wrong_parameters_are_named_at_once(evaluator: Evaluator) -> None:
    message = await refused(evaluator, {"nosuch": 1, "maxCpu": True})
    assert "parameters.nosuch is not known here: remove it; known are maxCpu, maxMemory" in message
    assert "parameters.maxCpu is true, but must be a text or a number" in message


@pytest.mark.parametrize(("stage", "about"), [("input", "input"), ("graph", "graph")])
async def test_a_finding_without_a_path_is_about_all_that_its_policy_judges(
    evaluator: Evaluator, tmp_path: Path, stage: str, about: str
) -> None:
    text = f'package p\npolicies: mine: {{stage: "{stage}", violations: [{{message: "no"}}]}}\n'
    tree = Tree(root=evaluators.write(tmp_path, {"p.cue": text}))
    assert summary(await found(evaluator, tree)).startswith(f"{about}: no (policy mine, p.cue:2:")


async def test_a_violation_of_a_module_without_a_path_is_about_its_input(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = 'package app\n#Input: {}\ninput: #Input\nviolations: [{message: "no"}]\n'
    tree = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    answer = await evaluator.render(tree, {}, CONTEXT)
    assert [(one.path, one.position) for one in answer.violations] == [("input", "a.cue:4:15")]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ('violations: [{path: "a", message: ""}]', "violations[0] has no message"),
        (
            'violations: [{path: "a", message: string}]',
            "p.cue:2:51: policies.mine.violations[0].message: has no value, only what it must be "
            "(a text): write one, or take it from the input",
        ),
    ],
)
async def test_a_policy_that_cannot_be_evaluated_is_named_with_what_is_wrong(
    evaluator: Evaluator, tmp_path: Path, policy: str, problem: str
) -> None:
    text = f"package p\npolicies: mine: {policy}\n"
    tree = Tree(root=evaluators.write(tmp_path, {"p.cue": text}))
    with pytest.raises(ModuleError, match=r'^the policy "mine" cannot be evaluated$') as caught:
        await found(evaluator, tree)
    assert [str(one) for one in caught.value.problems] == [problem]
