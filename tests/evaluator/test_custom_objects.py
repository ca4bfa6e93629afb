"""Objects against CustomResourceDefinitions, as an API server with these would judge them."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from pequod.evaluator.errors import ModuleError
from pequod.evaluator.evaluator import Evaluator

DEPLOY = Path(__file__).parents[2] / "deploy"
SPEC = {
    "type": "object",
    "required": ["engine", "size"],
    "properties": {
        "engine": {"type": "string", "enum": ["postgres", "mysql"]},
        "size": {"type": "string", "pattern": "^[0-9]+Gi$"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "port": {"x-kubernetes-int-or-string": True},
        "backup": {
            "type": "object",
            "default": {},
            "required": ["schedule"],
            "properties": {"schedule": {"type": "string", "default": "daily"}},
        },
        "users": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "admin": {"type": "boolean"}},
            },
        },
        "tags": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "note": {"type": "string", "nullable": True},
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.engine != 'mysql' || self.replicas == 1",
            "message": "mysql has one replica",
        },
        {
            "rule": "self.replicas < 6",
            "messageExpression": "'too many: ' + string(self.replicas)",
        },
    ],
}
DATABASES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "databases.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Database", "plural": "databases"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}


def database(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": {"name": "orders", "labels": {"a": "b"}},
        "spec": {"engine": "postgres", "size": "5Gi", **spec},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"replicas": 5},
        {"port": 5432},
        {"port": "sql"},
        {"backup": {}},
        {"free": {"any": {"thing": [1]}}},
        {"note": None},
        {"users": [{"name": "a"}, {"name": "b", "admin": True}]},
    ],
)
async def test_a_sound_object_has_no_problems(evaluator: Evaluator, spec: dict[str, Any]) -> None:
    """Defaults are filled in before anything is required."""
    found = await evaluator.validate([DATABASES], [database(**spec)])
    assert (found.problems, found.unknown) == ((), ())


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"size": "large"}, "spec.size", "should match '^[0-9]+Gi$'"),
        ({"engine": "oracle"}, "spec.engine", 'supported values: "postgres", "mysql"'),
        ({"replicas": 0}, "spec.replicas", "greater than or equal to 1"),
        ({"replicas": "2"}, "spec.replicas", "must be of type integer"),
        ({"replicas": 1.5}, "spec.replicas", "must be of type integer"),
        ({"port": True}, "spec.port", "must be of type integer,string"),
        ({"flavour": "x"}, "spec.flavour", "unknown field"),
        ({"users": [{"name": "a", "root": 1}]}, "spec.users[0].root", "unknown field"),
        ({"users": [{"admin": True}]}, "spec.users[0].name", "Required value"),
        ({"users": [{"name": "a"}] * 2}, "spec.users[1]", "Duplicate value"),
        ({"tags": ["a", "a"]}, "spec.tags[1]", "Duplicate value"),
        ({"users": [{"name": str(n)} for n in range(4)]}, "spec.users", "Too many"),
        ({"engine": "mysql", "replicas": 2}, "spec", "mysql has one replica"),
        ({"replicas": 7}, "spec", "too many: 7"),
    ],
)
async def test_a_problem_names_its_field(
    evaluator: Evaluator, spec: dict[str, Any], path: str, message: str
) -> None:
    found = await evaluator.validate([DATABASES], [database(), database(**spec)])
    assert {(one.object, one.path) for one in found.problems} == {(1, path)}
    assert message in found.problems[0].message


async def test_a_field_that_is_required_is_asked_for(evaluator: Evaluator) -> None:
    bare = {**database(), "spec": {"engine": "postgres"}}
    [problem] = (await evaluator.validate([DATABASES], [bare])).problems
    assert (problem.path, problem.message) == ("spec.size", "Required value")


async def test_every_problem_is_told_at_once(evaluator: Evaluator) -> None:
    wrong = database(size="large", engine="oracle", flavour="x")
    found = await evaluator.validate([DATABASES], [wrong])
    assert {one.path for one in found.problems} == {"spec.size", "spec.engine", "spec.flavour"}


async def test_objects_without_a_definition_are_listed(evaluator: Evaluator) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    later = {**database(), "apiVersion": "example.com/v2"}
    found = await evaluator.validate([DATABASES], [pod, database(), later])
    assert found.unknown == (0, 2)
    assert found.problems == ()


async def test_a_definition_that_is_not_structural_is_refused(evaluator: Evaluator) -> None:
    broken = deepcopy(DATABASES)
    versions: Any = broken["spec"]
    versions["versions"][0]["schema"]["openAPIV3Schema"] = {"properties": {"spec": {"$ref": "#/a"}}}
    with pytest.raises(ModuleError, match=r"not structural|forbidden"):
        await evaluator.validate([broken], [database()])


async def test_a_rule_that_costs_too_much_is_a_problem(evaluator: Evaluator) -> None:
    broken = deepcopy(DATABASES)
    versions: Any = broken["spec"]
    versions["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-validations": [
            {"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}
        ],
    }
    costly = {**database(), "spec": list(range(1000))}
    found = (await evaluator.validate([broken], [costly])).problems
    assert any("cost" in one.message for one in found)


async def test_a_definition_that_is_none_is_refused(evaluator: Evaluator) -> None:
    with pytest.raises(ModuleError, match="cannot be read"):
        await evaluator.validate([{"spec": []}], [database()])


def _yaml(path: Path) -> dict[str, Any]:
    return dict(next(yaml.safe_load_all(path.read_text())))


@pytest.mark.parametrize("name", ["transform", "complete/transform", "resourcegraph", "cluster"])
async def test_the_samples_of_the_product_meet_its_definitions(
    evaluator: Evaluator, name: str
) -> None:
    definitions = [_yaml(path) for path in sorted((DEPLOY / "crds").glob("*.yaml"))]
    sample = _yaml(DEPLOY / f"samples/{name}.yaml")
    found = await evaluator.validate(definitions, [sample])
    assert (found.problems, found.unknown) == ((), ())
    found = await evaluator.validate(definitions, [{**sample, "spec": {"sepc": 1}}])
    assert any("unknown field" in one.message for one in found.problems)
