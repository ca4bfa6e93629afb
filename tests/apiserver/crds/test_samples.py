"""The samples are valid, complete, and keep what was written."""

from pathlib import Path

import pytest

from clusters import Api
from schemas import ROOT, Kind, kinds, ours, places, properties, sample_files

SAMPLES = sample_files()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sample_is_accepted_and_stored_as_it_was_written(
    path: Path, api: Api, as_operator: Api, namespace: str
) -> None:
    for sample in ours(path):
        kind = kinds()[sample["kind"]]
        sample["metadata"]["namespace"] = namespace
        writer = as_operator if "sourceRef" in sample["spec"] else api
        answer = writer.create(kind.collection(namespace), sample)
        assert answer.code == 201, answer.message
        assert _contains(answer.body["spec"], sample["spec"])


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
def test_the_complete_samples_use_every_field_of_the_spec(kind: Kind) -> None:
    spec = kind.schema["properties"]["spec"]
    wanted = {path for path, _ in properties(spec)}
    used = {_dotted(path) for sample in kind.samples() for path, _ in places(spec, sample["spec"])}
    assert wanted - used == set()


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join("[]" if isinstance(step, int) else f".{step}" for step in path)


def _contains(stored: object, written: object) -> bool:
    if isinstance(written, dict) and isinstance(stored, dict):
        return all(name in stored and _contains(stored[name], written[name]) for name in written)
    if isinstance(written, list) and isinstance(stored, list):
        return len(stored) == len(written) and all(map(_contains, stored, written))
    return bool(stored == written)
