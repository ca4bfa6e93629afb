"""The API types decode what the API server stores, and nothing else passes for it."""

import json

import msgspec
import pytest

from pequod.api import KINDS
from pequod.api.platform import Transform
from schemas import ROOT, load

SAMPLES = sorted((ROOT / "deploy/samples").rglob("*.yaml"))
BY_KIND = {resource.definition.kind: resource for resource in KINDS}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sample_decodes_into_its_type_and_encodes_into_itself(path: object) -> None:
    for sample in load(path):  # type: ignore[arg-type]
        stored = sample | {"status": {"observedGeneration": -1}}
        decoded = msgspec.json.decode(json.dumps(stored), type=BY_KIND[sample["kind"]])
        again = msgspec.convert(msgspec.to_builtins(decoded), type=BY_KIND[sample["kind"]])
        assert again == decoded


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
