"""What is wrong with a module is told once, in words, with its place and what to change."""

from pathlib import Path

import pytest

import evaluators
from pequod.controllers.platform.rendering import NotRenderedError
from pequod.evaluator.errors import ModuleError
from pequod.evaluator.evaluator import Evaluator, Tree

MODULE = 'module: "example.com/app@v0"\nlanguage: version: "v0.12.0"\n'
HEAD = """\
package app
#Input: {name?: string, size?: int, level: string | *"low"}
input: #Input
context: {name: string, namespace: string}
_title: string
#Closed: {color: string}
"""
CONTEXT = {"name": "shop", "namespace": "team"}


async def told(
    evaluator: Evaluator, root: Path, text: str, given: dict[str, object] | None = None
) -> str:
    """What a Transform of a module that is one file would say."""
    tree = Tree(root=evaluators.write(root, {"module.cue": text}))
    with pytest.raises(ModuleError) as caught:
        await evaluator.render(tree, given or {}, CONTEXT)
    return str(NotRenderedError(caught.value))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            "string",
            "7:43: nodes.a.data.x: has no value, only what it must be (a text): write one, or take "
            "it from the input",
        ),
        (
            '"b" | "c"',
            '7:40: nodes.a.data.x: has no value, but may be "b" or "c": choose one, or mark one as '
            "the default with *",
        ),
        (
            "_title",
            "5:9: nodes.a.data.x: has no value: it needs _title, which has none: write a value or "
            "a default for it into the module",
        ),
        (
            "input.name",
            "7:49: nodes.a.data.x: has no value: it needs input.name, which was not given: give "
            "it, or write a default for it into the module",
        ),
        (
            r'"\(input.level)-\(input.name)"',
            "7:67: nodes.a.data.x: has no value: it needs input.name, which was not given: give "
            "it, or write a default for it into the module",
        ),
        (
            "input.nmae",
            "7:49: nodes.a.data.x: takes input.nmae, which is not known: did you mean name? Known "
            "are level, name, size",
        ),
        (
            "context.cluster",
            "7:51: nodes.a.data.x: takes context.cluster, which is not known: correct its name; "
            "known are name, namespace",
        ),
        (
            '"a" & "b"',
            '7:43: nodes.a.data.x: cannot be both "b" and "a": keep one of them (see also '
            "module.cue:7:49)",
        ),
        (
            "5 & >10",
            "7:47: nodes.a.data.x: is 5, but must be more than 10: change it (see also "
            "module.cue:7:43)",
        ),
        (
            '#Closed & {color: "red", colour: "red"}',
            "7:68: nodes.a.data.x.colour: is not known: did you mean color? Known are color",
        ),
        ('error("say red or blue")', "7:43: nodes.a.data.x: say red or blue"),
        (
            "input.level + 1",
            "7:43: nodes.a.data.x: cannot be computed: invalid operands \"low\" and 1 to '+' (type "
            "string and int): correct what is written there",
        ),
    ],
)
async def test_a_value_that_is_missing_or_wrong_is_told_with_what_to_change(
    evaluator: Evaluator, tmp_path: Path, value: str, sentence: str
) -> None:
    text = f'{HEAD}graph: nodes: [{{id: "a", object: data: x: {value}}}]\n'
    assert (
        await told(evaluator, tmp_path, text) == f"the module is not valid: module.cue:{sentence}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            'package app\nimport "strings"\n#Input: {}\n',
            '2:8: imports "strings" and does not use it: remove the import',
        ),
        (
            'package app\nimport "stringz"\n#Input: {}\nx: stringz.X\n',
            '2:8: imports "stringz", which is none of CUE\'s own packages: correct its name',
        ),
        (
            "package app\n#Input: {}\ngraph: nodes: [\n",
            "3:17: cannot be read: expected ']', found the end of the file: correct what is",
        ),
        (
            "package app\n#Input: {}\nx: nosuch\n",
            "3:4: x: takes nosuch, which is not known: correct its name, or define or import it",
        ),
        (
            "package app\n#Input: {}\na: {b: a}\n",
            "3:5: a.b: contains itself, without an end: take out the reference to itself",
        ),
        (
            "package app\n#Input: {}\nx: [1 2]\ny: {z: ]\n",
            "3:7: cannot be read: missing ',' in list literal: correct what is written there",
        ),
        (
            "package app\n#Input: {}\nx: [for one in [1] {y: nosuch}]\n",
            "3:24: x.y: takes nosuch, which is not known: correct its name, or define or import it",
        ),
        (
            'package app\nimport "regexp"\n#Input: {}\nx: regexp.FindSubmatch("a", "b")\n',
            "4:4: x: cannot be computed: error in call to regexp.FindSubmatch: no match: correct",
        ),
        ("\npackage 1\n", "2:9: cannot be read: expected a name, found 'INT' 1: correct what is"),
    ],
)
async def test_a_file_that_cannot_be_loaded_is_told_with_what_to_change(
    evaluator: Evaluator, tmp_path: Path, text: str, sentence: str
) -> None:
    message = await told(evaluator, tmp_path, text)
    assert message.startswith(f"the module is not valid: module.cue:{sentence}")
    assert message.count("module.cue") == 1


@pytest.mark.parametrize("declared", [False, True])
async def test_an_import_that_is_not_there_has_its_place_once(
    evaluator: Evaluator, tmp_path: Path, *, declared: bool
) -> None:
    if declared:
        evaluators.write(tmp_path, {"cue.mod/module.cue": MODULE})
    text = 'package app\nimport "lib.example.com/a"\n#Input: {}\ngraph: nodes: [a.x]\n'
    assert await told(evaluator, tmp_path, text) == (
        'the module is not valid: module.cue:2:8: imports "lib.example.com/a", which is not there: '
        "correct its name, name its module among the deps of cue.mod/module.cue, or put its files "
        "below cue.mod/pkg"
    )


async def test_what_is_wrong_in_an_imported_package_is_told_with_its_own_place(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    files = {"cue.mod/module.cue": MODULE, "sub/sub.cue": "package sub\nx: [\n"}
    evaluators.write(tmp_path, files)
    text = 'package app\nimport "example.com/app/sub"\n#Input: {}\ngraph: nodes: [sub.x]\n'
    assert (await told(evaluator, tmp_path, text)).startswith(
        "the module is not valid: sub/sub.cue:2:6: cannot be read: expected ']'"
    )


async def test_a_line_that_makes_many_nodes_is_told_once(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    nodes = 'graph: nodes: [for k in ["p", "q", "r"] {id: k, object: x: input.name}]\n'
    message = await told(evaluator, tmp_path, HEAD + nodes)
    assert message.count("nodes.p.x: has no value: it needs input.name") == 1
    assert "nodes.q" not in message


@pytest.mark.parametrize(
    ("nodes", "needed"),
    [
        ('[{id: "a", object: {let given = input, x: given.name}}]', "input.name"),
        ("[for one in input.parts {id: one.id, object: x: one.size}]", "input.parts[…].size"),
        (
            '[for one in input.parts let its = one for two in [1] {id: "a", object: x: its.size}]',
            "input.parts[…].size",
        ),
    ],
)
async def test_a_short_name_for_a_part_of_the_input_is_told_in_full(
    evaluator: Evaluator, tmp_path: Path, nodes: str, needed: str
) -> None:
    text = HEAD.replace("{name?", "{parts?: [...{id: string, size?: int}], name?")
    text += f"_other: [for one in [{{size: 1}}] {{x: one.size}}]\ngraph: nodes: {nodes}\n"
    message = await told(evaluator, tmp_path, text, {"parts": [{"id": "p"}]})
    assert f"has no value: it needs {needed}, which was not given: give it, or write" in message


async def test_a_contradiction_with_the_input_says_so(evaluator: Evaluator, tmp_path: Path) -> None:
    nodes = 'graph: nodes: [{id: "a", object: x: input.size & string}]\n'
    message = await told(evaluator, tmp_path, HEAD + nodes, {"size": 3})
    assert "nodes.a.x: cannot be both a text and 3: keep one of them (see also " in message
    assert message.endswith("and the input)")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ('{x: "hunter2"}, data: {x: "hunter3"}', "has two values that contradict each other"),
        ('{x: "hunter2" + 1}', "cannot be computed: correct what is written there"),
        ('{x: "hunter2" & =~"^b"}', 'must be a text that matches "^b"'),
    ],
)
async def test_values_of_secrets_are_not_shown(
    evaluator: Evaluator, tmp_path: Path, data: str, what: str
) -> None:
    nodes = f'graph: nodes: [{{id: "a", object: {{kind: "Secret", data: {data}}}}}]\n'
    message = await told(evaluator, tmp_path, HEAD + nodes)
    assert f"nodes.a.data.x: {what}" in message
    assert "hunter" not in message


async def test_no_more_problems_are_told_than_somebody_reads(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    fields = ", ".join(f"x{number}: string" for number in range(9))
    message = await told(
        evaluator, tmp_path, HEAD + f'graph: nodes: [{{id: "a", object: {{{fields}}}}}]\n'
    )
    assert message.count("has no value") == 5
    assert message.endswith("; and 4 more")
