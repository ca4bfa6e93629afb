"""What the emitter says of a type, and what it refuses to say."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from pequod.api.meta import Declared
from pequod.api.schema import ATOMIC_LIST, FreeForm, Immutable, Rule, check, one_of
from pequod.crd.schema import UnsupportedTypeError, refuse_ambiguity, structural_schema


class Inner(Declared, frozen=True):
    """Something nested."""

    size: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    """How much of it."""


class Everything(Declared, frozen=True):
    """A struct with one field of each sort."""

    rules = (one_of("choice", "moment", what="a test"),)

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=9, pattern="^[a-z]+$")]
    """What it is called."""

    choice: Literal["One", "Two"] | None = None
    """Which of them."""

    moment: datetime | None = None
    """When it was."""

    inner: Inner = Inner()
    """What it holds."""

    several: Annotated[tuple[Inner, ...], ATOMIC_LIST, msgspec.Meta(max_length=4)] = ()
    """More of them."""

    labels: dict[str, str] = {}
    """Words by word."""

    anything: FreeForm = {}
    """Whatever else."""

    fixed: Immutable[Annotated[bool, check(Rule(rule="self", message="must be true"))]] = True
    """Never changes."""


def test_a_type_becomes_the_schema_that_it_reads_like() -> None:
    schema = structural_schema(Everything, "Everything")
    fields = schema["properties"]
    assert schema["description"] == "A struct with one field of each sort."
    assert schema["required"] == ["name"]
    assert schema["x-kubernetes-validations"][0]["message"] == (
        "a test sets exactly one of choice, moment"
    )
    assert fields["name"] == {
        "description": "What it is called.",
        "type": "string",
        "minLength": 1,
        "maxLength": 9,
        "pattern": "^[a-z]+$",
    }
    assert fields["choice"]["enum"] == ["One", "Two"]
    assert fields["moment"]["format"] == "date-time"
    assert fields["inner"]["default"] == {}
    assert fields["inner"]["properties"]["size"]["default"] == 3
    assert fields["inner"]["properties"]["size"]["maximum"] == 9
    assert fields["several"]["maxItems"] == 4
    assert fields["several"]["x-kubernetes-list-type"] == "atomic"
    assert fields["labels"]["additionalProperties"] == {"type": "string"}
    assert fields["anything"]["x-kubernetes-preserve-unknown-fields"] is True
    assert [rule["message"] for rule in fields["fixed"]["x-kubernetes-validations"]] == [
        "must be true",
        "is immutable: create a new object instead",
    ]
    refuse_ambiguity(schema, "Everything")


def test_an_empty_list_or_map_has_no_default_because_absent_means_the_same() -> None:
    fields = structural_schema(Everything, "Everything")["properties"]
    assert all("default" not in fields[name] for name in ("several", "labels", "anything"))


class Recursive(Declared, frozen=True):
    """Contains itself."""

    child: "Recursive | None" = None
    """The same again."""


class Silent(Declared, frozen=True):
    """Has a field that nobody explains."""

    mystery: str


class Sum(Declared, frozen=True):
    """One of two things."""

    value: int | str = 0
    """Either."""


class Nullable(Declared, frozen=True):
    """Must be there and may be nothing."""

    value: str | None
    """Perhaps."""


class Numbered(Declared, frozen=True):
    """Keys that JSON does not have."""

    by_number: dict[int, str] = {}
    """By number."""


class Bounded(Declared, frozen=True):
    """Bounds that a schema says in another way."""

    above: Annotated[int, msgspec.Meta(gt=0)] = 1
    """More than that."""


class Keyed(Declared, frozen=True):
    """A map whose keys are bounded, which no schema can say."""

    by_name: dict[Annotated[str, msgspec.Meta(max_length=3)], str] = {}
    """By name."""


class Binary(Declared, frozen=True):
    """Bytes."""

    content: bytes = b""
    """Some."""


class Mixed(Declared, frozen=True):
    """An enum of numbers."""

    level: Literal[1, 2] = 1
    """Which."""


class Tagged(msgspec.Struct, tag="x"):
    """A tagged struct."""

    value: str
    """Something."""


@pytest.mark.parametrize(
    ("cls", "problem"),
    [
        (Recursive, "Recursive.child: Recursive contains itself"),
        (Silent, "Silent.mystery: has no docstring"),
        (Sum, "Sum.value: is a union of several types"),
        (Nullable, "Nullable.value: is nullable and required"),
        (Numbered, "Numbered.byNumber: keys of a JSON object are strings"),
        (Bounded, "Bounded.above: say bounds with ge and le"),
        (Keyed, "Keyed.byName: a schema cannot bound the keys of a map"),
        (Binary, "Binary.content: a structural schema cannot say BytesType"),
        (Mixed, "Mixed.level: an enum holds strings only"),
        (Tagged, "Tagged: tagged and array-like structs"),
        (int, "int: expected StructType"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_refused_by_the_path_of_the_field(
    cls: type, problem: str
) -> None:
    with pytest.raises(UnsupportedTypeError) as refusal:
        structural_schema(cls, cls.__name__)
    assert str(refusal.value).startswith(problem)


class Unmerged(Declared, frozen=True):
    """A list that does not say how it merges."""

    items: tuple[str, ...] = ()
    """Some."""


class Leaky(Declared, frozen=True):
    """An object whose fields would all be pruned."""

    deep: Annotated[tuple[dict[str, Any], ...], ATOMIC_LIST] = ()
    """Some."""


@pytest.mark.parametrize(
    ("cls", "problem"),
    [
        (Unmerged, "Unmerged.items: a list says how it merges"),
        (Leaky, "Leaky.deep[]: dict[str, Any] loses every field"),
    ],
)
def test_a_schema_that_would_surprise_is_refused(cls: type, problem: str) -> None:
    with pytest.raises(UnsupportedTypeError) as refusal:
        refuse_ambiguity(structural_schema(cls, cls.__name__), cls.__name__)
    assert str(refusal.value).startswith(problem)
