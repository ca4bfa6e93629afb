"""The commands about modules, as they are typed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import evaluators
from commandline import Pequod


@pytest.fixture
def service(tmp_path: Path) -> str:
    path = tmp_path / "input.yaml"
    path.write_text("image: ghcr.io/acme/shop:1.4.2\nport: 8080\n")
    return str(path)


def test_a_shipped_module_renders_without_a_cluster(pequod: Pequod, service: str) -> None:
    done = pequod("render", "embedded:webservice", "-i", service, "--name", "shop", "-n", "team")
    objects = list(yaml.safe_load_all(done.stdout))
    assert [one["kind"] for one in objects] == [
        "ServiceAccount",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
    ]
    assert {one["metadata"]["namespace"] for one in objects} == {"team"}
    assert {one["metadata"]["name"] for one in objects} == {"shop"}


def test_the_input_may_come_from_standard_input_as_json(pequod: Pequod) -> None:
    text = json.dumps({"image": "ghcr.io/acme/shop:1.4.2"})
    done = pequod("render", "embedded:webservice", "-i", "-", "-o", "json", stdin=text)
    items = json.loads(done.stdout)["items"]
    assert items[0]["kind"] == "ServiceAccount"


def test_the_graph_can_be_printed_and_drawn(pequod: Pequod, service: str) -> None:
    graph = yaml.safe_load(
        pequod("render", "embedded:webservice", "-i", service, "-o", "graph").stdout
    )
    (deployment,) = (node for node in graph["nodes"] if node["object"]["kind"] == "Deployment")
    needed = deployment["dependsOn"][0]
    dot = pequod("render", "embedded:webservice", "-i", service, "-o", "dot").stdout
    assert f'"{needed}" -> "{deployment["id"]}";' in dot
    mermaid = pequod("render", "embedded:webservice", "-i", service, "-o", "mermaid").stdout
    assert mermaid.startswith("flowchart TD\n")
    assert mermaid.count("-->") == dot.count("->")


def test_rendering_twice_prints_the_same_bytes(pequod: Pequod) -> None:
    command = ("render", "embedded:database", "-i", "-")
    text = "engine: postgres\ncredentials: {secretName: login}\nbackup: {}\n"
    assert pequod(*command, stdin=text).stdout == pequod(*command, stdin=text).stdout


def test_violations_are_printed_with_their_place_and_end_with_1(pequod: Pequod) -> None:
    for command in ("validate", "render"):
        done = pequod(command, "embedded:webservice", "-i", "-", stdin="port: 70000\n", code=1)
        assert done.stdout == ""
        assert "error: input.image is required" in done.stderr
        assert "error: input.port is 70000, but must be a whole number from 1" in done.stderr
        assert "input.cue:" in done.stderr


def test_a_valid_input_is_said_to_be_valid(pequod: Pequod, service: str) -> None:
    assert pequod("validate", "embedded:webservice", "-i", service).stdout == "valid\n"


def test_policies_judge_as_well_when_asked_for(pequod: Pequod, service: str) -> None:
    command = ("validate", "embedded:webservice", "-i", "-", "--policies", "embedded:policy")
    assert pequod(*command, stdin=Path(service).read_text()).stdout == "valid\n"
    refused = "image: ghcr.io/acme/shop:1\nresources: {limits: {memory: 900Gi}}\n"
    done = pequod(*command, stdin=refused, code=1)
    assert "(policy resource-limits)" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "holds a list"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents"),
        ("", "holds 0 documents"),
        ("a: 1\na: 2\n", 'key "a" already set'),
        ("a: [", "is not valid YAML"),
    ],
)
def test_an_input_that_is_no_object_ends_with_1(pequod: Pequod, text: str, said: str) -> None:
    done = pequod("validate", "embedded:webservice", "-i", "-", stdin=text, code=1)
    assert said in done.stderr


def test_a_module_that_is_nowhere_ends_with_4(pequod: Pequod, service: str, tmp_path: Path) -> None:
    done = pequod("render", str(tmp_path / "nowhere"), "-i", service, code=4)
    assert "there is no folder" in done.stderr
    done = pequod("render", "embedded:nothing", "-i", service, code=4)
    assert "Known are embedded:database, embedded:policy, embedded:webservice" in done.stderr


def test_an_input_file_that_is_nowhere_ends_with_1(pequod: Pequod, tmp_path: Path) -> None:
    done = pequod("render", "embedded:webservice", "-i", str(tmp_path / "nowhere"), code=1)
    assert "nowhere" in done.stderr


def test_wrong_usage_ends_with_2(pequod: Pequod, service: str) -> None:
    pequod("render", "embedded:webservice", code=2)
    pequod("render", "embedded:webservice", "-i", service, "-o", "pdf", code=2)


def test_a_bomb_ends_with_3(pequod: Pequod, tmp_path: Path) -> None:
    text = (
        'import "list"\n#Input: {...}\ninput: #Input\ncontext: {...}\n'
        "graph: nodes: [for a in list.Range(0, 1000000, 1) for b in list.Range(0, 1000000, 1)"
        ' {id: "\\(a)\\(b)", object: {}}]\n'
    )
    folder = evaluators.write(tmp_path / "bomb", {"a.cue": text})
    done = pequod("render", str(folder), "-i", "-", stdin="{}", code=3)
    assert "a limit was hit" in done.stderr


def test_a_broken_module_ends_with_1_and_names_the_place(pequod: Pequod, tmp_path: Path) -> None:
    folder = evaluators.write(tmp_path / "broken", {"a.cue": "package a\n#Input: {\n"})
    done = pequod("render", str(folder), "-i", "-", stdin="{}", code=1)
    assert "a.cue:" in done.stderr


def test_a_graph_of_another_shape_names_the_field(pequod: Pequod, tmp_path: Path) -> None:
    text = (
        "#Input: {...}\ninput: #Input\ncontext: {...}\n"
        'graph: nodes: [{id: "a", objekt: {}, object: {apiVersion: "v1", kind: "Secret"}}]\n'
    )
    folder = evaluators.write(tmp_path / "odd", {"a.cue": text})
    done = pequod("render", str(folder), "-i", "-", stdin="{}", code=1)
    assert "graph.nodes[0].objekt: is not known here" in done.stderr


def test_a_new_module_renders_and_passes_its_tests(pequod: Pequod, tmp_path: Path) -> None:
    folder = tmp_path / "greeting"
    pequod("module", "init", str(folder))
    assert "2 tests, 0 failed" in pequod("module", "test", str(folder)).stdout
    done = pequod("render", str(folder), "-i", "-", "--name", "hi", stdin="message: hello")
    assert yaml.safe_load(done.stdout)["data"] == {"message": "hello"}
    assert "is there already" in pequod("module", "init", str(folder), code=1).stderr


def test_a_failing_test_of_a_module_says_in_what_it_differs(pequod: Pequod, tmp_path: Path) -> None:
    folder = tmp_path / "greeting"
    pequod("module", "init", str(folder))
    (folder / "tests/wrong_test.yaml").write_text(
        "input: {message: hello}\nexpect: {objects: [Secret/other]}\n"
    )
    done = pequod("module", "test", str(folder), code=1)
    assert "failed  wrong\n        objects are ConfigMap/test\n" in done.stdout
    assert "3 tests, 1 failed" in done.stdout


def test_a_module_without_tests_is_told_how_to_write_one(pequod: Pequod, tmp_path: Path) -> None:
    folder = evaluators.write(tmp_path / "bare", {"a.cue": "#Input: {...}\n"})
    assert "has no tests" in pequod("module", "test", str(folder), code=1).stderr


@pytest.mark.parametrize("module", ["webservice", "database", "policy"])
def test_every_shipped_module_passes_its_own_tests(pequod: Pequod, module: str) -> None:
    assert " 0 failed" in pequod("module", "test", f"embedded:{module}").stdout


def test_the_schema_of_a_module_is_json_schema(pequod: Pequod) -> None:
    schema = json.loads(pequod("module", "schema", "embedded:webservice").stdout)
    assert schema["type"] == "object"
    assert schema["required"] == ["image"]
    assert "Container image" in schema["properties"]["image"]["description"]


def test_a_module_can_be_copied_to_be_edited(pequod: Pequod, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    pequod("module", "pull", "embedded:webservice", str(folder))
    (folder / "input.cue").write_text((folder / "input.cue").read_text() + "\n// edited\n")
    assert " 0 failed" in pequod("module", "test", str(folder)).stdout


@pytest.mark.parametrize("option", [("--name", "Upper"), ("-n", "with_underscore"), ("-n", "")])
def test_a_name_that_no_object_can_have_ends_with_2(
    pequod: Pequod, service: str, option: tuple[str, str]
) -> None:
    pequod("render", "embedded:webservice", "-i", service, *option, code=2)


def test_what_a_module_says_cannot_harm_the_terminal(pequod: Pequod, tmp_path: Path) -> None:
    text = (
        "#Input: {...}\ninput: #Input\ncontext: {...}\ngraph: nodes: []\n"
        'violations: [{path: "[/x]", message: "\\\\[/nope] \\u001b]0;title", severity: "Error"}]\n'
    )
    folder = evaluators.write(tmp_path / "odd", {"a.cue": text})
    done = pequod("validate", str(folder), "-i", "-", stdin="{}", code=1)
    assert "[/nope]" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_graph_of_things_that_are_no_objects_is_refused(pequod: Pequod, tmp_path: Path) -> None:
    text = (
        "#Input: {...}\ninput: #Input\ncontext: {...}\n"
        'graph: nodes: [{id: "a", object: {apiVersion: "v1", kind: "Secret", metadata: "x"}}]\n'
    )
    folder = evaluators.write(tmp_path / "odd", {"a.cue": text})
    done = pequod("render", str(folder), "-i", "-", "-o", "dot", stdin="{}", code=1)
    assert "graph.nodes[0].object.metadata: is missing, or of another type" in done.stderr


def test_a_new_module_may_have_any_name(pequod: Pequod, tmp_path: Path) -> None:
    for name in ("Ünïcode", "1st", "---"):
        pequod("module", "init", str(tmp_path / name))
        assert "2 tests, 0 failed" in pequod("module", "test", str(tmp_path / name)).stdout


def test_a_test_that_is_several_documents_is_told_so(pequod: Pequod, tmp_path: Path) -> None:
    folder = tmp_path / "greeting"
    pequod("module", "init", str(folder))
    (folder / "tests/two_test.yaml").write_text("expect: {}\n---\nexpect: {}\n")
    done = pequod("module", "test", str(folder), code=1)
    assert "two_test.yaml is no test of a module" in done.stderr


def test_a_full_disk_is_a_sentence(service: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("pequod"),
                "render",
                "embedded:webservice",
                "-i",
                service,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
