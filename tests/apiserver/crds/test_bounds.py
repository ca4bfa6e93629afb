"""Every enum, bound, pattern and required field, broken wherever a complete sample uses it."""

from collections.abc import Iterator
from typing import Any

import pytest

from clusters import Api
from schemas import Kind, Path_, Schema, kinds, places, replaced, value_at


def _values_outside(schema: Schema, value: Any) -> Iterator[object]:  # noqa: ANN401 -- JSON
    if "enum" in schema:
        yield "Bogus"
    yield from _sizes_outside(schema, value)
    yield from _texts_outside(schema)
    yield from _of_another_type(schema)


def _texts_outside(schema: Schema) -> Iterator[str]:
    if schema.get("minLength"):
        yield ""
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        yield "not/acceptable!"
    if schema.get("format") == "date-time":
        yield "yesterday"


def _sizes_outside(schema: Schema, value: Any) -> Iterator[object]:  # noqa: ANN401 -- JSON
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if schema.get("minItems"):
        yield []
    if "maxItems" in schema and value:
        yield [value[0]] * (schema["maxItems"] + 1)
    if "maxProperties" in schema and value:
        some = next(iter(value.values()))
        yield {f"key-{number}": some for number in range(schema["maxProperties"] + 1)}


def _of_another_type(schema: Schema) -> Iterator[object]:
    if schema.get("x-kubernetes-int-or-string"):
        yield True
    elif schema["type"] in {"integer", "boolean", "object", "array"}:
        yield "text"
    else:
        yield 42


def _broken(kind: Kind) -> Iterator[tuple[int, Path_, object]]:
    for number, sample in enumerate(kind.samples()):
        for path, schema in places(kind.schema["properties"]["spec"], sample["spec"]):
            here = ("spec", *path)
            for outside in _values_outside(schema, value_at(sample, here)):
                yield number, here, outside
            for name in schema.get("required", ()):
                yield number, (*here, name), ...


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
def test_a_value_outside_its_bounds_is_refused_with_the_path_of_its_field(
    kind: Kind, as_operator: Api, namespace: str
) -> None:
    accepted = []
    unnamed = []
    cases = list(_broken(kind))
    for number, path, value in cases:
        sample = replaced(kind.samples()[number], path, value)
        answer = as_operator.create(kind.collection(namespace), sample, dry_run=True)
        if answer.code < 400:
            accepted.append((path, str(value)[:80]))
        names = [step for step in path if isinstance(step, str)]
        if names[-1] not in answer.message:
            unnamed.append((path, answer.message))
    assert accepted == []
    assert unnamed == []
    assert len(cases) > 20


def test_more_nodes_than_a_graph_may_hold_are_refused(api: Api, namespace: str) -> None:
    kind = kinds()["ResourceGraph"]
    sample = kind.samples()[1]
    (node,) = sample["spec"]["nodes"]
    sample["spec"]["nodes"] = [{**node, "id": f"n{number}"} for number in range(1001)]
    answer = api.create(kind.collection(namespace), sample, dry_run=True)
    assert answer.code == 422
    assert "spec.nodes" in answer.message
    sample["spec"]["nodes"].pop()
    assert api.create(kind.collection(namespace), sample, dry_run=True).code == 201


def test_an_unknown_field_is_named_instead_of_dropped(api: Api, namespace: str) -> None:
    kind = kinds()["Transform"]
    sample = replaced(kind.samples()[0], ("spec", "cueRef", "reff"), "typo")
    answer = api.create(kind.collection(namespace), sample, dry_run=True)
    assert answer.code == 400
    assert 'unknown field "spec.cueRef.reff"' in answer.message
