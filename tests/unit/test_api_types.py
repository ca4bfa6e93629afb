"""The API types decode what the API server stores, and nothing else passes for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pequod.api import KINDS
from pequod.api.platform import Transform
from schemas import ROOT, Path_, kinds, load, ours, places, sample_files

SAMPLES = sample_files()
BY_KIND = {resource.definition.kind: resource for resource in KINDS}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sample_decodes_into_its_type_and_nothing_of_it_is_lost(path: Path) -> None:
    """Encoding leaves defaults out; everything else must come back as it was written."""
    for sample in ours(path):
        stored = sample | {"status": {"observedGeneration": -1}}
        decoded = msgspec.json.decode(json.dumps(stored), type=BY_KIND[sample["kind"]])
        encoded = dict(leaves(msgspec.to_builtins(decoded.spec)))
        defaults = {
            place: schema.get("default")
            for place, schema in places(
                kinds()[sample["kind"]].schema["properties"]["spec"], sample["spec"]
            )
        }
        for place, value in leaves(sample["spec"]):
            assert encoded.get(place, defaults.get(place)) == value, place


def leaves(value: object, place: Path_ = ()) -> Iterator[tuple[Path_, object]]:
    """Every scalar of an object, with its place; moments as text."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from leaves(child, (*place, name))
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from leaves(child, (*place, index))
    else:
        yield place, value


def test_defaults_are_those_that_the_schema_declares() -> None:
    spec = msgspec.convert(
        {"cueRef": {"type": "embedded", "ref": "webservice"}, "input": {}},
        type=Transform.__orig_bases__[0].__args__[0],  # type: ignore[attr-defined]
    )
    assert (spec.deletion_policy, spec.interval, spec.suspend) == ("Delete", "10m", False)


def test_a_spec_never_changes_in_place() -> None:
    (sample,) = load(ROOT / "deploy/samples/transform.yaml")
    transform = msgspec.convert(sample | {"status": {}}, type=Transform)
    with pytest.raises(AttributeError):
        transform.spec.suspend = True  # type: ignore[misc]
