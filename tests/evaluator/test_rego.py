"""Rego in the styles that one meets, without anything that reaches out or differs each time."""

from pathlib import Path

import pytest

import evaluators
from pequod.evaluator.errors import MissingError, ModuleError, OverLimitError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.evaluator.worker import Bounds

POD = {"kind": "Pod", "spec": {"hostNetwork": True, "containers": [{"image": "a:latest"}]}}


def policies(root: Path, *texts: str) -> Tree:
    files = {f"policy{number}.rego": text for number, text in enumerate(texts)}
    return Tree(root=evaluators.write(root, files))


async def test_rego_1_denies(evaluator: Evaluator, tmp_path: Path) -> None:
    tree = policies(
        tmp_path,
        """\
package main

deny contains msg if {
	some container in input.spec.containers
	endswith(container.image, ":latest")
	msg := sprintf("%s moves", [container.image])
}

warn contains "uses the network of its node" if input.spec.hostNetwork
""",
    )
    found = await evaluator.rego(tree, POD)
    assert [(one.package, one.rule, one.kind, one.message) for one in found] == [
        ("main", "deny", "deny", "a:latest moves"),
        ("main", "warn", "warn", "uses the network of its node"),
    ]


async def test_the_syntax_before_rego_1_denies(evaluator: Evaluator, tmp_path: Path) -> None:
    tree = policies(
        tmp_path,
        'package main\n\ndeny[msg] {\n\tinput.spec.hostNetwork\n\tmsg := "no"\n}\n',
        'package gate.keeper\n\nviolation[{"msg": msg, "details": {"field": "spec"}}] {\n'
        '\tinput.kind == "Pod"\n\tmsg := "bare pod"\n}\n',
    )
    found = await evaluator.rego(tree, POD)
    assert [(one.package, one.kind, one.message, one.metadata) for one in found] == [
        ("gate.keeper", "violation", "bare pod", {"details": {"field": "spec"}}),
        ("main", "deny", "no", {}),
    ]


async def test_what_is_in_order_has_no_findings(evaluator: Evaluator, tmp_path: Path) -> None:
    tree = policies(tmp_path, 'package main\ndeny contains "x" if input.bad\n')
    assert await evaluator.rego(tree, {}) == ()


@pytest.mark.parametrize(
    ("rule", "messages"),
    [
        ("deny if input.kind", ["deny"]),
        ("deny := false", []),
        ("default deny := false", []),
        ('deny := "a text"', ["a text"]),
        ('deny := ["a", "b"]', ["a", "b"]),
        ('deny contains {"msg": "object"} if true', ["object"]),
        ('deny_root contains "m" if true', ["m"]),
        ('violation_of_law contains "m" if true', ["m"]),
        ('denylist contains "m" if true', []),
        ('deny contains {"reason": "no msg"} if true', ['{"reason":"no msg"}']),
        ("deny contains 7 if true", ["7"]),
    ],
)
async def test_every_style_of_a_rule_is_read(
    evaluator: Evaluator, tmp_path: Path, rule: str, messages: list[str]
) -> None:
    found = await evaluator.rego(policies(tmp_path, f"package main\n{rule}\n"), POD)
    assert [one.message for one in found] == messages


async def test_a_function_beside_the_rules_is_not_asked(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = (
        'package main\ndeny_reason(x) := concat(" ", ["no", x])\n'
        'deny contains deny_reason("pod") if true\n'
    )
    found = await evaluator.rego(policies(tmp_path, text), POD)
    assert [one.message for one in found] == ["no pod"]


async def test_annotations_become_metadata(evaluator: Evaluator, tmp_path: Path) -> None:
    text = """\
package main

# METADATA
# title: No pods
# description: Use a Deployment.
# custom:
#   severity: high
deny contains {"msg": "a pod", "severity": "low"} if input.kind == "Pod"
"""
    [found] = await evaluator.rego(policies(tmp_path, text), POD)
    assert found.metadata == {
        "title": "No pods",
        "description": "Use a Deployment.",
        "severity": "low",
    }


async def test_annotations_of_one_definition_are_not_given_to_another(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    """The same set is defined twice: which of both has found something can't be told."""
    text = """\
package main

# METADATA
# title: {title}
deny contains "{title}" if true
"""
    tree = policies(tmp_path, text.format(title="one"), text.format(title="two"))
    for _ in range(8):
        found = await evaluator.rego(tree, POD)
        assert [(one.message, one.metadata) for one in found] == [("one", {}), ("two", {})]


async def test_large_whole_numbers_are_kept(evaluator: Evaluator, tmp_path: Path) -> None:
    text = 'package main\ndeny contains sprintf("%d", [input.number]) if true\n'
    [found] = await evaluator.rego(policies(tmp_path, text), {"number": 2**62 + 1})
    assert found.message == str(2**62 + 1)


async def test_packages_import_each_other_and_tests_are_left_out(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    files = {
        "lib/k8s.rego": 'package lib.k8s\nis_pod if input.kind == "Pod"\n',
        "main.rego": 'package main\nimport data.lib.k8s\ndeny contains "pod" if k8s.is_pod\n',
        "main_test.rego": "package main\nthis is no rego\n",
    }
    tree = Tree(root=evaluators.write(tmp_path, files))
    assert [one.message for one in await evaluator.rego(tree, POD)] == ["pod"]
    assert len(await evaluator.rego(Tree(root=tmp_path, digest="a"), POD)) == 1
    assert len(await evaluator.rego(Tree(root=tmp_path, digest="a"), {})) == 0


@pytest.mark.parametrize(
    "call",
    [
        'http.send({"method": "get", "url": "http://169.254.169.254"})',
        "time.now_ns()",
        'rand.intn("seed", 10)',
        'net.lookup_ip_addr("localhost")',
        "opa.runtime()",
        'uuid.rfc4122("x")',
    ],
)
async def test_what_reaches_out_or_differs_each_time_does_not_compile(
    evaluator: Evaluator, tmp_path: Path, call: str
) -> None:
    text = f"package main\n\ndeny contains msg if {{\n\tmsg := {call}\n}}\n"
    name = call.partition("(")[0]
    with pytest.raises(ModuleError, match=rf"policy0\.rego:4.*undefined function {name}"):
        await evaluator.rego(policies(tmp_path, text), POD)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("package main\n\ndeny contains {\n", r"policy0\.rego:\d"),
        ("package main\ndeny contains x if true\n", r"policy0\.rego:2.*var x is unsafe"),
        ("package main\ndeny contains nosuch(1) if true\n", r"policy0\.rego:2.*nosuch"),
        ("deny contains 1 if true\n", r"policy0\.rego:1.*package expected"),
        ("package main\ndeny contains to_number(input.kind) if true\n", r"main\.deny.*to_number"),
    ],
)
async def test_a_broken_policy_fails_with_its_place(
    evaluator: Evaluator, tmp_path: Path, text: str, named: str
) -> None:
    """A policy that cannot be evaluated must not pass."""
    with pytest.raises(ModuleError, match=f"(?s){named}") as caught:
        await evaluator.rego(policies(tmp_path, text), POD)
    assert str(tmp_path) not in str(caught.value)


async def test_a_tree_without_rego_says_so(evaluator: Evaluator, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"there is no \.rego file"):
        await evaluator.rego(Tree(root=tmp_path), POD)


async def test_a_link_out_of_the_tree_is_not_followed(evaluator: Evaluator, tmp_path: Path) -> None:
    outside = evaluators.write(
        tmp_path / "outside", {"a.rego": 'package a\ndeny contains "x" if true\n'}
    )
    tree = policies(tmp_path / "tree", "package main\n")
    (tree.root / "a.rego").symlink_to(outside / "a.rego")
    (tree.root / "folder").symlink_to(outside)
    with pytest.raises(ModuleError, match=r"a\.rego leads out of the tree"):
        await evaluator.rego(tree, POD)


async def test_a_policy_without_end_is_ended(tmp_path: Path) -> None:
    text = (
        "package main\n\ndeny contains msg if {\n"
        "\tmsg := count([1 | a := numbers.range(1, 40000)[_]; numbers.range(1, 40000)[_] > a])\n}\n"
    )
    async with evaluators.evaluating(bounds=Bounds(seconds=1, memory_bytes=256 * 2**20)) as small:
        with pytest.raises(OverLimitError):
            await small.rego(policies(tmp_path, text), POD)
        assert await small.rego(policies(tmp_path, "package main\n"), POD) == ()
