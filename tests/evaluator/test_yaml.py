"""YAML that somebody else wrote, and YAML that was written to hurt."""

from typing import Any

import pytest

from pequod.evaluator.errors import EvaluationError, ModuleError, OverLimitError
from pequod.evaluator.evaluator import Evaluator

LAUGHS = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


async def read(evaluator: Evaluator, text: str) -> tuple[Any, ...]:
    return await evaluator.documents(text, name="things.yaml")


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("", ()),
        ("---\n---\n# nothing\n---\nnull\n", ()),
        ("a: 1", ({"a": 1},)),
        ("a: 1\n---\nb: 2\n", ({"a": 1}, {"b": 2})),
        ("--- # first\na: 1\n---   \nb: 2\n...\n", ({"a": 1}, {"b": 2})),
        ("\ufeffa: 1\n", ({"a": 1},)),
        ("\ufeff---\na: 1\n", ({"a": 1},)),
        ("a: 1\r\nb: 2\r\n---\r\nc: 3\r\n", ({"a": 1, "b": 2}, {"c": 3})),
        ('{"a": [1, 2.5, "x", null, true]}', ({"a": [1, 2.5, "x", None, True]},)),
        ("[1, 2]", ([1, 2],)),
        ("text", ("text",)),
        ("a: |\n  x\n  --- y\n", ({"a": "x\n--- y\n"},)),
    ],
)
async def test_documents_are_read(
    evaluator: Evaluator, text: str, documents: tuple[Any, ...]
) -> None:
    assert await read(evaluator, text) == documents


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("9007199254740993", 2**53 + 1),
        ("18446744073709551615", 2**64 - 1),
        ("0777", 511),
        ("0o777", 511),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1e999", "1e999"),
        ("1.50", 1.5),
        ("yes", True),
        ("no", False),
        ("on", True),
        ("y", True),
        ("'no'", "no"),
        ("~", None),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("!!str 12", "12"),
        ("!!binary aGk=", "hi"),
    ],
)
async def test_scalars_mean_what_they_mean_to_kubernetes(
    evaluator: Evaluator, written: str, value: object
) -> None:
    """Pinned: kubectl reads the same, YAML 1.1 with its surprises."""
    [document] = await read(evaluator, f"key: {written}\n")
    assert document == {"key": value}


async def test_keys_are_scalars_as_well(evaluator: Evaluator) -> None:
    [document] = await read(evaluator, "no: 1\n8080: 2\n1.5: 3\n")
    assert document == {"false": 1, "8080": 2, "1.5": 3}


async def test_merge_keys_are_merged(evaluator: Evaluator) -> None:
    text = "base: &base {a: 1, b: 2}\nmore: {<<: *base, c: 3}\n"
    [document] = await read(evaluator, text)
    assert document["more"] == {"a": 1, "b": 2, "c": 3}


async def test_a_merged_key_that_is_given_again_counts_as_a_duplicate(evaluator: Evaluator) -> None:
    """Pinned: parsers disagree about which of both wins."""
    with pytest.raises(ModuleError, match='key "b" already set'):
        await read(evaluator, "base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!ruby/object", "!GetAtt"])
async def test_tags_of_other_languages_make_nothing_but_data(
    evaluator: Evaluator, tag: str
) -> None:
    assert await read(evaluator, f"a: {tag} [id]\n") == ({"a": ["id"]},)


async def test_the_items_of_a_list_stand_for_it(evaluator: Evaluator) -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B}\n---\nkind: C\n"
    assert await read(evaluator, text) == ({"kind": "A"}, {"kind": "B"}, {"kind": "C"})
    text = "apiVersion: acme.io/v1\nkind: List\nitems: [{kind: A}]\n"
    assert len((await read(evaluator, text))[0]["items"]) == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a: 1\nb: 2\na: 3\n", r'line 3: key "a" already set'),
        ("a: {b: 1, b: 2}\n", 'key "b" already set'),
        ("a: .nan\n", "."),
        ("a: .inf\n", "."),
        ("a: !!int yes\n", "."),
        ("a: b: c\n", "mapping values are not allowed"),
        ("a:\n\t- b\n", "line 2"),
        ("a: *nowhere\n", "unknown anchor"),
        ("a: &a [*a]\n", "contains itself"),
        ("a: 1\n--- {b: 2}\n", "separator"),
        ("a: 1\n...\nb: 2\n", "what follows the end of a document"),
        ("a: 1\n---\tb: 2\n", "separator"),
        ("? [a, b]\n: 1\n", "key"),
        ("a: \x00\n", "control characters"),
        ("{a: " * 10_000 + "}" * 10_000, "max depth|levels|line"),
        ("[" * 20_000, "max depth|levels|line"),
        (LAUGHS, "excessive aliasing"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
async def test_what_is_wrong_or_cannot_be_json_is_refused(
    evaluator: Evaluator, text: str, named: str
) -> None:
    with pytest.raises((ModuleError, OverLimitError), match=f"(?s)things.yaml.*{named}"):
        await read(evaluator, text)
    assert await read(evaluator, "a: 1") == ({"a": 1},)


async def test_what_is_nested_deeper_than_objects_are_is_over_the_limit(
    evaluator: Evaluator,
) -> None:
    assert await read(evaluator, "[" * 150 + "]" * 150)
    with pytest.raises(OverLimitError, match="more than 200 levels"):
        await read(evaluator, "[" * 9000 + "]" * 9000)


async def test_too_many_documents_are_over_the_limit(evaluator: Evaluator) -> None:
    assert len(await read(evaluator, "a: 1\n---\n" * 10_000)) == 10_000
    with pytest.raises(OverLimitError, match="more than 10000 documents"):
        await read(evaluator, "a: 1\n---\n" * 10_001)
    many = "apiVersion: v1\nkind: List\nitems: [" + "{}," * 10_001 + "]\n"
    with pytest.raises(OverLimitError, match="more than 10000 documents"):
        await read(evaluator, many)


async def test_a_text_larger_than_a_request_may_be_is_over_the_limit(evaluator: Evaluator) -> None:
    with pytest.raises(OverLimitError, match=r"the request has \d+ bytes and \d+ are allowed"):
        await read(evaluator, "a: " + "x" * 50_000_000)
    assert await read(evaluator, "a: 1") == ({"a": 1},)


async def test_a_text_of_random_bytes_is_an_error(evaluator: Evaluator) -> None:
    with pytest.raises(EvaluationError):
        await read(evaluator, "".join(chr(n) for n in range(1, 128)))
