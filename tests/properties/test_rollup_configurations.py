"""Whatever stands in the Secrets of a chain: it is valid or refused, soon, and nothing is told."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chains
from chains import Content, Document, changed, material, rollup, spec, without
from pequod.controllers.rollup.configuration import (
    PACKED_GENESIS,
    Configuration,
    InvalidConfigurationError,
    Material,
    configuration,
    packed,
)
from pequod.controllers.rollup.findings import File

LONGEST_MESSAGE = 32_768
"""As much as a condition can say."""
LONGEST = 1.0
"""Seconds of computing for one look at a configuration."""
LARGEST_SECRET = 2**20


def paths(document: Document, above: str = "") -> Iterator[str]:
    """Every place of a document."""
    for name, value in document.items():
        yield f"{above}.{name}"
        if isinstance(value, dict):
            yield from paths(value, f"{above}.{name}")


DOCUMENTS = {
    "genesis": chains.genesis(),
    "rollup": chains.rollup(),
    "l1_chain": chains.l1_chain(),
}
PLACES = st.sampled_from([(name, path) for name, one in DOCUMENTS.items() for path in paths(one)])
NUMBERS = st.integers() | st.integers().map(str) | st.integers().map(hex)
DIGITS = st.text(alphabet="0123456789abcdefABCDEFxX_+- ٣３", max_size=70)
ALMOST = st.sampled_from(["", "0x", "0X", "-0x"]).flatmap(lambda sign: DIGITS.map(sign.__add__))
SCALARS = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | ALMOST
    | st.text(max_size=20)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hash", "number", "chainId", "l1", "l2", ""]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
HIDDEN = st.binary(min_size=8, max_size=80) | st.text(
    alphabet="0123456789abcdefxABCDEF \n", min_size=8, max_size=80
).map(str.encode)
unhurried = settings(deadline=None)
"""Others may need the processor as well; `judged` counts only what we use of it."""
HIDING = st.sampled_from(["jwt", "batcher_key", "proposer_key", "l1_url"])


def judged(held: Material) -> Configuration | InvalidConfigurationError:
    """What becomes of what the Secrets hold; nothing else may happen, and not for long."""
    started = time.process_time()
    verdict: Configuration | InvalidConfigurationError
    try:
        verdict = configuration(spec(), held)
    except InvalidConfigurationError as error:
        verdict = error
    assert time.process_time() - started < LONGEST
    if isinstance(verdict, InvalidConfigurationError):
        assert verdict.problems
        assert len(set(verdict.problems)) == len(verdict.problems)
        assert not any("\n" in problem for problem in verdict.problems)
        assert len(str(verdict)) <= LONGEST_MESSAGE
    return verdict


@unhurried
@given(PLACES, JSON)
def test_whatever_stands_in_one_place_is_judged(place: tuple[str, str], value: object) -> None:
    name, path = place
    judged(material(**{name: changed(DOCUMENTS[name], path, value)}))


@unhurried
@given(PLACES, PLACES, JSON, JSON)
def test_whatever_stands_in_two_places_is_judged(
    one: tuple[str, str], other: tuple[str, str], first: object, second: object
) -> None:
    documents: dict[str, Any] = dict(DOCUMENTS)
    documents[one[0]] = changed(documents[one[0]], one[1], first)
    with suppress(KeyError, TypeError):  # The first one may have taken the place away.
        documents[other[0]] = changed(documents[other[0]], other[1], second)
    judged(material(**documents))


@unhurried
@given(PLACES)
def test_whatever_is_missing_is_judged(place: tuple[str, str]) -> None:
    name, path = place
    judged(material(**{name: without(DOCUMENTS[name], path)}))


@unhurried
@given(
    st.sampled_from(["genesis", "rollup", "l1_chain", "jwt", "batcher_key", "l1_url"]),
    st.binary(max_size=100) | st.text(max_size=100).map(lambda text: f'{{"a":"{text}"}}'.encode()),
    st.integers(min_value=0, max_value=200),
)
def test_whatever_bytes_a_secret_holds_are_judged(name: str, content: bytes, at: int) -> None:
    judged(material(**{name: content}))
    if name in DOCUMENTS:
        whole = chains.encoded(DOCUMENTS[name])
        judged(material(**{name: whole[:at] + content + whole[at:]}))


@unhurried
@given(st.binary(max_size=100), st.integers(min_value=0, max_value=600))
def test_whatever_a_packed_genesis_holds_is_judged(content: bytes, at: int) -> None:
    whole = packed(chains.encoded(chains.genesis()))
    for bad in (content, whole[:at] + content + whole[at + len(content) :]):
        judged(material(genesis=File("chain-genesis", PACKED_GENESIS, bad)))


@pytest.mark.parametrize(
    "value",
    [
        "9" * LARGEST_SECRET,
        "0x" + "f" * LARGEST_SECRET,
        "0x" + "0" * LARGEST_SECRET,
        [[]] * (LARGEST_SECRET // 3),
        {str(number): {} for number in range(LARGEST_SECRET // 12)},
    ],
    ids=["decimal", "hexadecimal", "zeros", "lists", "objects"],
)
@pytest.mark.parametrize(
    "place",
    [
        ("genesis", ".timestamp"),
        ("genesis", ".alloc"),
        ("genesis", ".config.chainId"),
        ("rollup", ".genesis.l1.hash"),
        ("rollup", ".genesis.l2.number"),
        ("rollup", ".genesis.system_config.batcherAddr"),
        ("l1_chain", ".chainId"),
    ],
    ids=" ".join,
)
def test_what_fills_a_whole_secret_is_judged_soon(place: tuple[str, str], value: object) -> None:
    name, path = place
    judged(material(**{name: changed(DOCUMENTS[name], path, value)}))


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("content", [b"9", b"[", b'{"":'])
def test_what_never_ends_is_judged_soon(name: str, content: bytes) -> None:
    judged(material(**{name: content * (LARGEST_SECRET // len(content))}))


@unhurried
@given(HIDING, HIDDEN)
def test_what_is_hidden_is_never_told(name: str, hidden: bytes) -> None:
    replaced: dict[str, Content] = {name: hidden, "rollup": without(rollup(), ".block_time")}
    held = material(**replaced)
    error = judged(held)
    assert isinstance(error, InvalidConfigurationError)
    assert untold(hidden, str(error), repr(error), repr(held))


@unhurried
@given(HIDDEN)
def test_a_secret_in_place_of_a_file_is_never_told(hidden: bytes) -> None:
    for content in (hidden, chains.encoded(hidden.decode("utf-8", "replace"))):
        held = material(genesis=content, rollup=content, l1_chain=content)
        error = judged(held)
        assert isinstance(error, InvalidConfigurationError)
        assert untold(hidden, str(error), repr(error), repr(held))


def untold(hidden: bytes, *texts: str) -> bool:
    """Whether a secret is in none of the texts, however it may be written."""
    readable = hidden.strip().decode("utf-8", "replace")
    ways = {readable, readable.removeprefix("0x"), hidden.hex(), repr(hidden)[2:-1]}
    return not any(way in text for way in ways if len(way) >= 8 for text in texts)
