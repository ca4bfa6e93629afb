"""Everything that is wrong with an input is said at once, to somebody who has never seen CUE."""

from pathlib import Path
from typing import Any

import pytest

import evaluators
from pequod.evaluator.answers import Violation
from pequod.evaluator.evaluator import Evaluator, Tree

MODULE = """package shop
import "strings"

#Input: {
	// The container image to run.
	image!: string & =~"^[a-z]"
	port:   *8080 | int & >=1 & <=65535
	name?:  strings.MinRunes(3)
	tier?:  "gold" | "silver" | "bronze"
	env?: [string]: string
	items?: [...{name: string, count: int}]
	size?: #Size
	owner?: string | error("must be the name of a team, for example shop")
	note?: string | error("notes are text")
	nested?: deep?: flag?: bool
}
#Size: =~"^[0-9]+Gi$"
input: #Input
context: {name: string, namespace: string}
graph: nodes: []
"""


@pytest.fixture
def module(tmp_path: Path) -> Tree:
    return Tree(root=evaluators.write(tmp_path / "module", {"shop/input.cue": MODULE}), path="shop")


async def violations(evaluator: Evaluator, module: Tree, given: object) -> dict[str, Violation]:
    found = (await evaluator.check_input(module, given)).violations
    return {violation.path: violation for violation in found}


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (
            {},
            "input.image",
            'is required: give a text that matches "^[a-z]" (The container image to run)',
        ),
        (
            {"port": 70000},
            "input.port",
            "is 70000, but must be a whole number, at least 1, at most 65535",
        ),
        (
            {"port": "80"},
            "input.port",
            'is "80", but must be a whole number, at least 1, at most 65535',
        ),
        ({"name": "ab"}, "input.name", 'is "ab", but must be a text of at least 3 characters'),
        ({"tier": "gld"}, "input.tier", 'is "gld", but must be one of "gold", "silver", "bronze"'),
        ({"env": {"A": 1}}, "input.env.A", "is 1, but must be a text"),
        (
            {"items": [{"name": "x", "count": "y"}]},
            "input.items[0].count",
            'is "y", but must be a whole number',
        ),
        ({"size": "10"}, "input.size", 'is "10", but must be a text that matches "^[0-9]+Gi$"'),
        ({"owner": 3}, "input.owner", "is 3, but must be the name of a team, for example shop"),
        ({"note": 3}, "input.note", "notes are text"),
        (
            {"nested": {"deep": {"flag": "x"}}},
            "input.nested.deep.flag",
            'is "x", but must be true or false',
        ),
        ({"env": "x"}, "input.env", 'is "x", but must be an object'),
        ({"items": {}}, "input.items", "is an object, but must be a list"),
    ],
)
async def test_a_violation_says_what_is_and_what_must_be(
    evaluator: Evaluator, module: Tree, given: dict[str, Any], path: str, message: str
) -> None:
    found = await violations(evaluator, module, {"image": "nginx", **given} if given else {})
    assert {place: one.message for place, one in found.items()} == {path: message}


async def test_an_unknown_field_is_told_from_a_misspelt_one(
    evaluator: Evaluator, module: Tree
) -> None:
    found = await violations(evaluator, module, {"imag": "nginx", "quite-another": 1})
    assert found["input.imag"].message.startswith("is not known here: did you mean image? Known")
    assert found['input."quite-another"'].message.startswith("is not known here: remove it; known")
    assert "input.image" in found


async def test_all_violations_of_all_kinds_are_found_in_one_go(
    evaluator: Evaluator, module: Tree
) -> None:
    given = {
        "port": 0,
        "tier": "x",
        "unknown": 1,
        "env": {"A": 1, "B": 2, "C": "fine"},
        "items": [{"name": 1, "count": 1}, {"count": "x"}],
    }
    assert set(await violations(evaluator, module, given)) == {
        "input.image",
        "input.port",
        "input.tier",
        "input.unknown",
        "input.env.A",
        "input.env.B",
        "input.items[0].name",
        "input.items[1].count",
        "input.items[1].name",
    }


async def test_a_violation_says_where_its_rule_is_written(
    evaluator: Evaluator, module: Tree
) -> None:
    found = await violations(evaluator, module, {"port": 70000, "size": "1", "unknown": 1})
    assert found["input.image"].position == "shop/input.cue:6:2"
    assert found["input.port"].position.startswith("shop/input.cue:7:")
    assert found["input.size"].position == "shop/input.cue:17:8"
    assert found["input.unknown"].position.startswith("shop/input.cue:")
    assert found["input.port"].cue_path == "#Input.port"


async def test_an_input_that_is_no_object_is_a_violation(
    evaluator: Evaluator, module: Tree
) -> None:
    inputs: tuple[object, ...] = ([], "text", 3, None)
    for given in inputs:
        assert await violations(evaluator, module, given), given


async def test_with_violations_there_is_no_graph(evaluator: Evaluator, module: Tree) -> None:
    rendered = await evaluator.render(module, {}, {"name": "a", "namespace": "b"})
    assert rendered.graph is None
    assert [violation.path for violation in rendered.violations] == ["input.image"]


async def test_a_modules_own_violations_block_only_as_errors(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = MODULE + (
        'violations: [if input.port == 1 {path: "input.port", message: "no", severity: "Error"},'
        ' if input.port == 2 {path: "input.port", message: "hm", severity: "Warning"}]\n'
    )
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    context = {"name": "a", "namespace": "b"}
    refused = await evaluator.render(module, {"image": "x", "port": 1}, context)
    assert (refused.graph, refused.violations[0].message) == (None, "no")
    warned = await evaluator.render(module, {"image": "x", "port": 2}, context)
    assert warned.graph == {"nodes": []}
    assert warned.violations[0].severity == "Warning"


async def test_what_is_missing_is_asked_for_in_the_authors_words(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = '#Input: {\n\t// Who pays.\n\tteam!: string & !="" | error("must be a team")\n}\n'
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    found = await violations(evaluator, module, {})
    assert found["input.team"].message == "is required: it must be a team (Who pays)"


async def test_rules_that_depend_on_the_context_are_judged_with_it(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = """#Input: {replicas: int, if context.namespace == "prod" {replicas: >=2}}
input: #Input
context: {name: string, namespace: string}
graph: nodes: []
"""
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    one, prod = {"replicas": 1}, {"name": "a", "namespace": "prod"}
    assert not (await evaluator.check_input(module, one, {**prod, "namespace": "test"})).violations
    (found,) = (await evaluator.check_input(module, one, prod)).violations
    assert found.message == "is 1, but must be a whole number, at least 2"
    assert (await evaluator.render(module, one, prod)).violations == (found,)


async def test_an_input_that_a_module_forgets_to_check_is_checked(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    files = {
        "cue.mod/module.cue": 'module: "example.test/a@v0"\nlanguage: version: "v0.17.0"\n',
        "lax/lax.cue": "package lax\n#Input: {...}\n",
        "a.cue": 'package a\nimport "example.test/a/lax"\n#Input: {port!: <10}\n'
        "input: lax.#Input\ncontext: {...}\ngraph: nodes: []\n",
    }
    module = Tree(root=evaluators.write(tmp_path, files))
    rendered = await evaluator.render(module, {"port": 99, "other": 1}, {})
    assert rendered.graph is None
    assert [one.path for one in rendered.violations] == ["input.other", "input.port"]


async def test_what_looks_like_a_secret_is_not_repeated(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = '#Input: {dbPassword?: =~"^[0-9]+$", login?: token?: int | error("must be a number")}\n'
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    given = {"dbPassword": "hunter2", "login": {"token": "hunter3"}}
    found = await violations(evaluator, module, given)
    assert len(found) == 2
    assert "hunter" not in str(found)


async def test_a_large_whole_number_stays_one_beside_other_mistakes(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": "#Input: {a: int, b: int}\n"}))
    found = await violations(evaluator, module, {"a": 10**21, "b": "x"})
    assert set(found) == {"input.b"}
