"""How an API type says what its CRD schema must hold: rules, list semantics, free-form parts.

Everything here is a declaration that msgspec carries along in a type's metadata; `pequod.crd` reads
it back. Field constraints that msgspec enforces itself (`pattern`, `ge`, `max_length` …) stay plain
`msgspec.Meta`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One CEL rule that the API server enforces, with the sentence a user reads when it fails."""

    rule: str
    """CEL over `self`, and over `oldSelf` where it guards a change."""

    message: str
    """What is wrong and what to write instead."""

    field_path: str | None = None
    """The child field that the error points at; the guarded value itself when absent."""


def check(*rules: Rule) -> msgspec.Meta:
    """Attach CEL rules to a field's type."""
    return extension("validations", [msgspec.to_builtins(rule) for rule in rules])


def extension(name: str, value: object) -> msgspec.Meta:
    """Attach one `x-kubernetes-*` extension to a field's type."""
    return msgspec.Meta(extra_json_schema={f"x-kubernetes-{name}": value})


def list_map(*keys: str) -> msgspec.Meta:
    """A list whose items are merged by key, each owned by whoever wrote it."""
    return msgspec.Meta(
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]}
    )


def one_of(*fields: str, what: str) -> Rule:
    """Exactly one of some optional fields of a struct is set."""
    count = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in fields)
    return Rule(rule=f"{count} == 1", message=f"{what} sets exactly one of {', '.join(fields)}")


ATOMIC_LIST = extension("list-type", "atomic")
"""A list that is replaced as a whole."""

SET_LIST = extension("list-type", "set")
"""A list of distinct scalars; every writer owns its own entries."""

ATOMIC_MAP = extension("map-type", "atomic")
"""A map or object that is replaced as a whole."""

FreeForm = Annotated[dict[str, Any], extension("preserve-unknown-fields", value=True)]
"""An object whose content is not ours to describe; it is stored as it was written."""

Quantity = (
    int
    | Annotated[
        str,
        msgspec.Meta(
            pattern=r"^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
            max_length=64,
        ),
    ]
)
"""An amount as Kubernetes writes it: `500m`, `4Gi`, or a bare number."""

Immutable = Annotated[
    T, check(Rule(rule="self == oldSelf", message="is immutable: create a new object instead"))
]
"""A field that keeps the value it was created with."""
