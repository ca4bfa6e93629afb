"""CUE packages: what is loaded, what is not, and what is said about it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import evaluators
from pequod.evaluator.errors import MissingError, ModuleError, OverLimitError
from pequod.evaluator.evaluator import Evaluator, Tree

POLICY = Path(__file__).parents[2] / "modules/policy"
MODULE = 'module: "example.com/app@v0"\nlanguage: version: "v0.12.0"\n'
APP = """\
package app

#Input: {
	// The name of the application.
	name!: string
	// How many there are.
	replicas: int & >=1 | *1
}
input: #Input
context: {namespace: string, ...}
graph: nodes: [{id: input.name, namespace: context.namespace, replicas: input.replicas}]
"""
GIVEN = {"name": "shop"}
CONTEXT = {"namespace": "team"}


def module(root: Path, files: dict[str, str], path: str = "", digest: str = "") -> Tree:
    evaluators.write(root, {"cue.mod/module.cue": MODULE, **files})
    return Tree(root=root, path=path, digest=digest)


async def nodes(evaluator: Evaluator, tree: Tree, given: object = GIVEN) -> list[object]:
    rendered = await evaluator.render(tree, given, CONTEXT)
    assert rendered.violations == ()
    assert rendered.graph is not None
    return list(rendered.graph["nodes"])


async def test_a_module_renders_its_graph(evaluator: Evaluator, tmp_path: Path) -> None:
    tree = module(tmp_path, {"app.cue": APP})
    assert await nodes(evaluator, tree) == [{"id": "shop", "namespace": "team", "replicas": 1}]


async def test_files_of_tools_and_tests_are_not_loaded(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    tool = (
        'package app\nimport "tool/exec"\n'
        f'command: x: exec.Run & {{cmd: ["touch", "{tmp_path}/executed"]}}\n'
        'graph: nodes: "no list"\n'
    )
    files = {
        "app.cue": APP,
        "app_tool.cue": tool,
        "app_test.cue": 'package app\ngraph: nodes: "test"\n',
    }
    assert len(await nodes(evaluator, module(tmp_path, files))) == 1
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("package", ["tool/exec", "tool/file", "tool/http", "tool/os", "tool/cli"])
async def test_what_tools_may_do_a_module_may_not(
    evaluator: Evaluator, tmp_path: Path, package: str
) -> None:
    name = package.rpartition("/")[2]
    text = f'package app\nimport "{package}"\n#Input: {{...}}\ngraph: nodes: [{name}]\n'
    try:
        graph = (await evaluator.render(module(tmp_path, {"a.cue": text}), {}, CONTEXT)).graph
    except ModuleError:
        return
    assert "root" not in str(graph)


async def test_a_file_of_the_tree_can_be_embedded(evaluator: Evaluator, tmp_path: Path) -> None:
    text = (
        "@extern(embed)\npackage app\n#Input: {...}\n"
        '_values: _ @embed(file="values.json")\n_all: _ @embed(glob="data/*.yaml")\n'
        "graph: nodes: [_values.a, for n, v in _all {v.b}]\n"
    )
    files = {"a.cue": text, "values.json": '{"a": 1}', "data/x.yaml": "b: 2\n"}
    assert await nodes(evaluator, module(tmp_path, files)) == [1, 2]


@pytest.mark.parametrize(
    "embedded",
    [
        'file="../outside/canary.json"',
        'file="OUTSIDE/canary.json"',
        'glob="../outside/*.json"',
        'file="/etc/hostname", type=text',
        'file="link.json"',
        'file="folder/canary.json"',
        'glob="folder/*.json"',
    ],
)
async def test_a_file_outside_of_the_tree_cannot_be_embedded(
    evaluator: Evaluator, tmp_path: Path, embedded: str
) -> None:
    outside = evaluators.write(tmp_path / "outside", {"canary.json": '{"canary": 1}'})
    where = embedded.replace("OUTSIDE", str(outside))
    text = (
        f"@extern(embed)\npackage app\n#Input: {{...}}\n_a: _ @embed({where})\ngraph: nodes: [_a]\n"
    )
    tree = module(tmp_path / "tree", {"a.cue": text})
    (tree.root / "link.json").symlink_to(outside / "canary.json")
    (tree.root / "folder").symlink_to(outside)
    with pytest.raises(ModuleError) as caught:
        await evaluator.render(tree, {}, CONTEXT)
    assert "canary" not in str(caught.value).replace("canary.json", "")


async def test_a_source_file_that_leads_out_of_the_tree_is_not_read(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    outside = evaluators.write(
        tmp_path / "outside", {"b.cue": 'package app\ngraph: nodes: ["canary"]\n'}
    )
    tree = module(tmp_path / "tree", {"a.cue": "package app\n#Input: {...}\n"})
    (tree.root / "b.cue").symlink_to(outside / "b.cue")
    with pytest.raises((ModuleError, MissingError)) as caught:
        await evaluator.render(tree, {}, CONTEXT)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("variable", ["os", "username", "hostname", "cwd", "rand", "now", "arch"])
async def test_nothing_of_the_machine_is_injected(
    evaluator: Evaluator, tmp_path: Path, variable: str
) -> None:
    text = (
        f'package app\n#Input: {{...}}\n_tag: string | *"nothing" @tag(x,var={variable})\n'
        '_env: string | *"nothing" @tag(HOME)\ngraph: nodes: [_tag, _env]\n'
    )
    tree = module(tmp_path, {"a.cue": text})
    assert await nodes(evaluator, tree, {}) == ["nothing", "nothing"]


async def test_a_module_that_is_not_there_is_named_and_not_fetched(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    declared = MODULE + 'deps: "example.com/lib@v0": v: "v0.1.0"\n'
    text = 'package app\nimport "example.com/lib@v0"\n#Input: {...}\ngraph: nodes: [lib.x]\n'
    tree = module(tmp_path, {"cue.mod/module.cue": declared, "a.cue": text})
    with pytest.raises(ModuleError) as caught:
        await evaluator.render(tree, {}, CONTEXT)
    assert '"example.com/lib@v0", which is not there' in str(caught.value.problems)
    assert "dial" not in str(caught.value.problems)
    text = 'package app\nimport "other.example.com/lib"\n#Input: {...}\ngraph: nodes: [lib.x]\n'
    tree = module(tmp_path / "second", {"a.cue": text})
    with pytest.raises(ModuleError) as caught:
        await evaluator.render(tree, {}, CONTEXT)
    assert '"other.example.com/lib", which is not there' in str(caught.value.problems)


async def test_packages_that_are_vendored_are_imported(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = (
        'package app\nimport "lib.example.com/a"\nimport "lib.example.com/b"\n'
        'import "example.com/app/sub"\n'
        "#Input: {...}\ngraph: nodes: [a.x, b.x, sub.x]\n"
    )
    files = {
        "a.cue": text,
        "sub/sub.cue": 'package sub\nx: "own"\n',
        "cue.mod/pkg/lib.example.com/a/a.cue": 'package a\nx: "pkg"\n',
        "cue.mod/usr/lib.example.com/b/b.cue": 'package b\nx: "usr"\n',
    }
    assert await nodes(evaluator, module(tmp_path, files)) == ["pkg", "usr", "own"]


async def test_loose_files_without_a_package_are_one(evaluator: Evaluator, tmp_path: Path) -> None:
    first = "#Input: name: string\ninput: #Input\ngraph: nodes: [input.name, _]\n"
    files = {"a.cue": first, "b.cue": 'graph: nodes: [_, "b"]\n'}
    tree = Tree(root=evaluators.write(tmp_path, files))
    assert await nodes(evaluator, tree) == ["shop", "b"]


async def test_one_of_several_packages_is_named_after_its_path(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    files = {
        "deploy/a.cue": 'package a\n#Input: {...}\ngraph: nodes: ["a"]\n',
        "deploy/b.cue": 'package b\n#Input: {...}\ngraph: nodes: ["b"]\n',
    }
    tree = module(tmp_path, files)
    with pytest.raises(ModuleError, match="several packages: say which, as in path:package"):
        await evaluator.render(Tree(root=tree.root, path="deploy"), {}, CONTEXT)
    for name in ("a", "b"):
        place = Tree(root=tree.root, path=f"deploy/:{name}")
        assert await nodes(evaluator, place) == [name]
    with pytest.raises(MissingError, match="no package nosuch in deploy: name one of a, b"):
        await evaluator.render(Tree(root=tree.root, path="deploy:nosuch"), {}, CONTEXT)


async def test_a_package_below_the_root_sees_the_module_around_it(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = 'package web\nimport "example.com/app/lib"\n#Input: {...}\ngraph: nodes: [lib.x]\n'
    files = {"envs/prod/web.cue": text, "lib/lib.cue": "package lib\nx: 7\n"}
    assert await nodes(evaluator, module(tmp_path, files, path="envs/prod"), {}) == [7]


@pytest.mark.parametrize("path", ["../outside", "a/../../outside", "link"])
async def test_a_path_out_of_the_tree_is_refused(
    evaluator: Evaluator, tmp_path: Path, path: str
) -> None:
    outside = module(tmp_path / "outside", {"app.cue": APP}).root
    tree = module(tmp_path / "tree", {"a/app.cue": APP}).root
    (tree / "link").symlink_to(outside)
    with pytest.raises(ModuleError, match="leads out of the tree"):
        await evaluator.render(Tree(root=tree, path=path), GIVEN, CONTEXT)


async def test_an_absolute_path_is_below_the_tree(evaluator: Evaluator, tmp_path: Path) -> None:
    tree = module(tmp_path, {"app.cue": APP}).root
    with pytest.raises(MissingError, match="there is no /etc in the tree"):
        await evaluator.render(Tree(root=tree, path="/etc"), GIVEN, CONTEXT)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("package app\ngraph: nodes: []\n", "the module has no #Input"),
        ("package app\n#Input: {...}\n", "the module has no graph"),
        (None, "there is no CUE file"),
    ],
)
async def test_what_a_module_must_have_is_asked_for(
    evaluator: Evaluator, tmp_path: Path, text: str | None, named: str
) -> None:
    tree = module(tmp_path, {"a.cue": text} if text else {})
    with pytest.raises(MissingError, match=named):
        await evaluator.render(tree, {}, CONTEXT)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("package app\n\n#Input: {\n", "sub/a.cue:3:11"),
        ("package app\n#Input: {...}\nx: 1 & 2\n", "sub/a.cue:3:4"),
        ("package app\n#Input: {...}\nx: nosuch\n", "sub/a.cue:3:4"),
        ('package app\nimport "strings"\n#Input: {...}\n', "sub/a.cue:2:8"),
        ("package app\n#Input: {...}\ngraph: nodes: [string]\n", "sub/a.cue:3:16"),
    ],
)
async def test_what_is_broken_is_named_with_file_line_and_column(
    evaluator: Evaluator, tmp_path: Path, text: str, position: str
) -> None:
    tree = module(tmp_path, {"sub/a.cue": text}, path="sub")
    with pytest.raises(ModuleError, match="the module is not valid") as caught:
        await evaluator.render(tree, {}, CONTEXT)
    assert position in [one.position for one in caught.value.problems]
    assert str(tmp_path) not in str([str(caught.value), *map(str, caught.value.problems)])


async def test_the_same_input_gives_the_same_bytes_every_time_and_everywhere(
    tmp_path: Path,
) -> None:
    text = APP + 'graph: labels: {for n in [3, 1, 2] {"key\\(n)": n}, z: 1, a: 2}\n'
    tree = module(tmp_path, {"app.cue": text}, digest="1")
    params = {**tree.params(), "input": GIVEN, "context": CONTEXT}
    async with evaluators.pool(size=2) as first, evaluators.pool(size=1) as second:
        texts = await asyncio.gather(*(first.ask("cue.render", params) for _ in range(50)))
        texts += [await second.ask("cue.render", {**params, "digest": d}) for d in ("", "2")]
    assert len({bytes(text) for text in texts}) == 1


async def test_a_module_says_what_it_takes_as_json_schema(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    schema = await evaluator.input_schema(module(tmp_path, {"app.cue": APP}))
    assert schema["type"] == "object"
    assert schema["required"] == ["name"]
    assert schema["properties"]["name"]["type"] == "string"
    assert "The name of the application" in schema["properties"]["name"]["description"]
    assert schema["properties"]["replicas"]["description"].startswith("How many")


async def test_the_policies_of_the_platform_judge_a_graph(evaluator: Evaluator) -> None:
    graph = {"nodes": [deployment("nginx:latest")]}
    subject = {"input": {}, "context": {"name": "a", "namespace": "b"}, "graph": graph}
    verdicts = {one.name: one for one in await evaluator.policies(Tree(root=POLICY), subject)}
    tags = verdicts["image-tags"]
    assert (tags.stage, tags.action, tags.overridable) == ("graph", "Warn", True)
    assert tags.parameters == {"forbidden": ["latest"], "requireDigest": False}
    assert "the tag latest moves" in tags.violations[0].message
    assert tags.violations[0].severity == "Warning"
    assert verdicts["security"].violations[0].severity == "Error"


async def test_parameters_override_the_defaults_of_a_policy(evaluator: Evaluator) -> None:
    graph = {"nodes": [deployment("nginx:latest")]}
    subject = {"input": {}, "context": {"name": "a", "namespace": "b"}, "graph": graph}
    verdicts = await evaluator.policies(
        Tree(root=POLICY), subject, parameters={"image-tags": {"forbidden": []}}
    )
    [tags] = [one for one in verdicts if one.name == "image-tags"]
    assert tags.violations == ()
    assert tags.parameters["forbidden"] == []


async def test_parameters_for_a_policy_that_is_not_there_are_refused(evaluator: Evaluator) -> None:
    subject = {"input": {}, "context": {"name": "a", "namespace": "b"}}
    with pytest.raises(MissingError, match='no policy "image-tag"'):
        await evaluator.policies(Tree(root=POLICY), subject, parameters={"image-tag": {}})
    with pytest.raises(ModuleError) as caught:
        await evaluator.policies(
            Tree(root=POLICY), subject, parameters={"image-tags": {"nosuch": 1}}
        )
    assert [one.path for one in caught.value.problems] == ["policies.image-tags.parameters.nosuch"]


@pytest.mark.parametrize(
    "policy",
    [
        'violations: [if input.nosuch > 1 {path: "a", message: "b"}]',
        'violations: [{path: "a", message: input.size + "text"}]',
        'violations: [{path: "a", message: string}]',
        'violations: [{path: "a", message: ""}]',
        'violations: [{path: "a", message: "b", severity: "Fatal"}]',
        'violations: "none"',
    ],
)
async def test_a_policy_that_cannot_be_evaluated_does_not_pass(
    evaluator: Evaluator, tmp_path: Path, policy: str
) -> None:
    text = f"package p\ninput: _\npolicies: {{good: violations: [], bad: {{{policy}}}}}\n"
    with pytest.raises(ModuleError):
        await evaluator.policies(module(tmp_path, {"p.cue": text}), {"input": {"size": 1}})


async def test_a_package_without_policies_says_so(evaluator: Evaluator, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="the package has no policies"):
        await evaluator.policies(module(tmp_path, {"p.cue": "package p\n"}), {"input": {}})


def deployment(image: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "a", "image": image}]}
    return {
        "id": "web",
        "object": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"template": {"spec": pod}},
        },
    }


async def test_a_graph_deeper_than_objects_are_is_over_the_limit(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    text = f"package app\n#Input: {{...}}\ngraph: nodes: {'[' * 3000}{']' * 3000}\n"
    with pytest.raises(OverLimitError, match="the result has more than 200 levels"):
        await evaluator.render(module(tmp_path, {"a.cue": text}), {}, CONTEXT)


async def test_what_a_worker_has_loaded_before_decides_nothing(tmp_path: Path) -> None:
    files = {
        f"{name}.cue": f"package {name}\n#Input: {{}}\ninput: #Input\ncontext: {{...}}\n"
        f'graph: nodes: [{{id: "{name}", object: {{}}}}]\n'
        for name in ("a", "b")
    }
    evaluators.write(tmp_path, files)
    async with evaluators.evaluating(size=1) as evaluator:
        for name in ("a", "b"):
            tree = Tree(root=tmp_path, path=f":{name}", digest="same")
            graph = (await evaluator.render(tree, {}, {})).graph
            assert graph is not None
            assert graph["nodes"][0]["id"] == name
            with pytest.raises(ModuleError, match="several packages"):
                await evaluator.render(Tree(root=tmp_path, digest="same"), {"n": name}, {})


async def test_case_86_the_order_of_fields_in_an_input_decides_nothing(tmp_path: Path) -> None:
    text = (
        "#Input: env: [string]: string\ninput: #Input\ncontext: {...}\n"
        "graph: nodes: [for k, _ in input.env {id: k, object: {}}]\n"
    )
    module = Tree(root=evaluators.write(tmp_path, {"a.cue": text}))
    async with evaluators.evaluating(size=1) as evaluator:
        one = await evaluator.render(module, {"env": {"b": "1", "a": "2"}}, {})
        other = await evaluator.render(module, {"env": {"a": "2", "b": "1"}}, {})
    assert one.graph == other.graph
