"""What our types accept is what the schema's patterns accept, for whatever anybody writes."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pequod.api.meta import Duration, Name
from pequod.api.platform import CueReference, TransformSpec

UNITS = st.sampled_from(["ms", "s", "m", "h"])
DURATIONS = st.lists(st.tuples(st.integers(0, 999), UNITS), min_size=1, max_size=4).map(
    lambda parts: "".join(f"{number}{unit}" for number, unit in parts)
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


def accepted(value: object, type_: object) -> bool:
    try:
        msgspec.convert(value, type=type_)
    except msgspec.ValidationError:
        return False
    return True


@given(DURATIONS)
def test_every_duration_as_go_writes_it_is_one(text: str) -> None:
    assert accepted(text, Duration)


@given(st.text(alphabet="ab9-.A_ /", max_size=12))
def test_a_name_is_accepted_just_when_it_is_a_dns_name(text: str) -> None:
    labels = text.split(".")
    dns = all(
        label and set(label) <= set("ab9-") and label[0] != "-" and label[-1] != "-"
        for label in labels
    )
    assert accepted(text, Name) == dns


@given(st.dictionaries(st.text(), JSON))
def test_free_form_input_survives_decoding_and_encoding_unchanged(value: dict[str, Any]) -> None:
    reference = CueReference(type="inline", ref="x")
    spec = TransformSpec(cue_ref=reference, input=value)
    again = msgspec.json.decode(msgspec.json.encode(spec), type=TransformSpec)
    assert again.input == value
    assert again == spec
