"""The committed CRDs and samples, and ways to walk through them."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
Schema = dict[str, Any]
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Kind:
    """One CRD, as it is committed."""

    name: str
    api_version: str
    plural: str
    schema: Schema

    def collection(self, namespace: str) -> str:
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    def samples(self) -> list[dict[str, Any]]:
        """The samples that together use every field."""
        return load(ROOT / f"deploy/samples/complete/{self.name.lower()}.yaml")


def sample_files() -> list[Path]:
    """Every file with samples of ours."""
    return sorted(path for path in (ROOT / "deploy/samples").rglob("*.yaml") if ours(path))


def ours(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that are of our kinds; the others are what they need besides."""
    known = {(kind.api_version, kind.name) for kind in kinds().values()}
    return [one for one in load(path) if (one["apiVersion"], one["kind"]) in known]


def load(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_bytes(), yaml.CSafeLoader))


@cache
def kinds() -> dict[str, Kind]:
    found = {}
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        (crd,) = load(path)
        spec, version = crd["spec"], crd["spec"]["versions"][0]
        found[spec["names"]["kind"]] = Kind(
            name=spec["names"]["kind"],
            api_version=f"{spec['group']}/{version['name']}",
            plural=spec["names"]["plural"],
            schema=version["schema"]["openAPIV3Schema"],
        )
    return found


def properties(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field below a schema, by its dotted path; `[]` for items, `*` for values of a map."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from properties(child, f"{path}.{name}")
    if "items" in schema:
        yield from properties(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from properties(schema["additionalProperties"], f"{path}.*")


def rules(schema: Schema, path: str = "") -> Iterator[dict[str, str]]:
    """Every CEL rule below a schema."""
    yield from schema.get("x-kubernetes-validations", ())
    for name, child in schema.get("properties", {}).items():
        yield from rules(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from rules(schema[key], path)


def places(schema: Schema, value: object, path: Path_ = ()) -> Iterator[tuple[Path_, Schema]]:
    """Every place of an object that its schema describes, with that schema."""
    yield path, schema
    if isinstance(value, dict):
        for name, child in value.items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if below:
                yield from places(below, child, (*path, name))
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(schema["items"], child, (*path, index))


def value_at(sample: dict[str, Any], path: Path_) -> Any:  # noqa: ANN401 -- JSON
    """What stands in one place of an object."""
    value: Any = sample
    for step in path:
        value = value[step]
    return value


def replaced(sample: dict[str, Any], path: Path_, value: object) -> dict[str, Any]:
    """The sample with another value in one place; `...` removes the field."""
    changed = copy.deepcopy(sample)
    target: Any = changed
    for step in path[:-1]:
        if isinstance(target, dict) and step not in target:
            target[step] = {}
        target = target[step]
    if value is ...:
        target.pop(path[-1], None)
    else:
        target[path[-1]] = value
    return changed
