"""What every kind has in common: its envelope, its conditions, its references, its definition.

The Struct options are fixed here once, so that a family's module holds fields and prose only.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from pequod.api.schema import ATOMIC_LIST, SET_LIST, Rule, check, list_map

CATEGORY = "pequod"
"""`kubectl get pequod` lists every kind of ours."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME_PATTERN = f"^{_LABEL}([.]{_LABEL})*$"
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN, min_length=1, max_length=253)]
"""The name of a Kubernetes object."""

ObjectName = Annotated[str, msgspec.Meta(pattern=r"^[^/%]+$", min_length=1, max_length=253)]
"""The name of whatever object: RBAC, for one, has names such as `system:node`."""

Duration = Annotated[str, msgspec.Meta(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", max_length=32)]
"""A span of time as Go and Kubernetes write it: `90s`, `10m`, `1h30m`."""

Period = Annotated[
    Duration, check(Rule(rule="duration(self) >= duration('1s')", message="must be at least 1s"))
]
"""A Duration that something waits for or repeats after; never zero."""

Timestamp = datetime
"""A moment in UTC, RFC 3339 on the wire."""


class Declared(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """A value that a user writes, or that we write once: it never changes in place."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules over the whole struct, for what a single field cannot say."""


class Observed(msgspec.Struct, rename="camel", omit_defaults=True):
    """A value that a controller writes and goes on writing."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules over the whole struct, for what a single field cannot say."""


class ObjectReference(Declared, frozen=True):
    """One object, by kind and name."""

    api_version: Annotated[str, msgspec.Meta(min_length=1, max_length=317)]
    """Group and version of the object, for example `apps/v1`."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    """Kind of the object."""

    name: ObjectName
    """Name of the object."""

    namespace: Name | None = None
    """Namespace of the object; absent for a cluster-scoped one."""

    uid: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """UID of the object: another object of the same name is not the one that is meant."""


class LocalReference(Declared, frozen=True):
    """An object of a known kind in the same namespace."""

    name: Name
    """Name of the object."""


class SecretKeyReference(Declared, frozen=True):
    """One key of a Secret in the same namespace."""

    name: Name
    """Name of the Secret."""

    key: Annotated[str, msgspec.Meta(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]
    """Key of the Secret that holds the value."""


class LabelRequirement(Declared, frozen=True):
    """One requirement of a label selector."""

    rules = (
        Rule(
            rule="(self.operator in ['In', 'NotIn'])"
            " == (has(self.values) && size(self.values) > 0)",
            message="In and NotIn need values; Exists and DoesNotExist have none",
            field_path=".values",
        ),
    )

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=317)]
    """The label that the requirement is about."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label relates to the values."""

    values: Annotated[tuple[str, ...], SET_LIST, msgspec.Meta(max_length=64)] = ()
    """Values for `In` and `NotIn`; empty for `Exists` and `DoesNotExist`."""


class LabelSelector(Declared, frozen=True):
    """Which objects, by their labels; all requirements must hold."""

    match_labels: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}
    """Labels that an object must have with exactly these values."""

    match_expressions: Annotated[
        tuple[LabelRequirement, ...], ATOMIC_LIST, msgspec.Meta(max_length=64)
    ] = ()
    """Requirements beyond equality."""


class Condition(Declared, frozen=True):
    """One aspect of an object's state, as `kubectl wait --for=condition=…` reads it."""

    type: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9._/-]*$", max_length=316)]
    """Name of the aspect."""

    status: Literal["True", "False", "Unknown"]
    """Whether the aspect holds."""

    reason: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=1024)]
    """Why, as one word for programs."""

    message: Annotated[str, msgspec.Meta(max_length=32768)]
    """Why, as a sentence for people, with what to do next."""

    last_transition_time: Timestamp
    """When the status last changed."""

    observed_generation: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """The generation of the spec that this condition speaks of."""


class Spec(Declared, frozen=True):
    """What a user asks for."""


class Status(Observed):
    """What the controller last saw and did."""

    observed_generation: Annotated[int, msgspec.Meta(ge=-1)] = -1
    """The generation of the spec that this status speaks of; -1 until the first look at it."""

    conditions: Annotated[tuple[Condition, ...], list_map("type"), msgspec.Meta(max_length=32)] = ()
    """State by aspect. `Ready` sums it up; `Reconciling` and `Stalled` are there while true."""

    last_handled_reconcile_at: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    """The value of the annotation `reconcile.pequod.io/requestedAt` that was last acted upon."""


class ObjectMeta(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The part of an object's metadata that we read."""

    name: str
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None


class Column(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    priority: int = 0


def column(name: str, json_path: str, *, type: str = "string", wide: bool = False) -> Column:  # noqa: A002 -- the CRD's own word
    """A column of `kubectl get`, or of `kubectl get -o wide`."""
    return Column(name=name, json_path=json_path, type=type, priority=int(wide))


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a CRD says of a kind besides its schema."""

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...]
    scope: Literal["Namespaced", "Cluster"]
    columns: tuple[Column, ...]
    conditions: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """What objects of this kind say as their `apiVersion`."""
        return f"{self.group}/{self.version}"


SpecT = TypeVar("SpecT", bound=Spec)
StatusT = TypeVar("StatusT", bound=Status)


class Resource(
    msgspec.Struct, Generic[SpecT, StatusT], kw_only=True, rename="camel", omit_defaults=True
):
    """A custom resource: envelope, what is asked for, what was seen.

    `status` is never absent: the schema defaults it, so that a fresh object says `-1`.
    """

    definition: ClassVar[Definition]

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: SpecT
    status: StatusT


ResourceT = TypeVar("ResourceT", bound=Resource[Any, Any])

_READY = '.status.conditions[?(@.type=="Ready")]'
COMMON_COLUMNS = (
    column("Ready", f"{_READY}.status"),
    column("Status", f"{_READY}.message"),
    column("Age", ".metadata.creationTimestamp", type="date"),
)
"""The columns that end the row of every kind."""


def crd(
    api_version: str,
    *,
    plural: str,
    short: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    conditions: tuple[str, ...] = (),
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
) -> Callable[[type[ResourceT]], type[ResourceT]]:
    """Define a kind: the class's own name under `api_version`.

    `conditions` are its own, in the order of its steps; every kind has `Ready` besides.
    """
    group, version = api_version.split("/")

    def define(resource: type[ResourceT]) -> type[ResourceT]:
        resource.definition = Definition(
            group=group,
            version=version,
            kind=resource.__name__,
            plural=plural,
            short_names=short,
            scope=scope,
            columns=(*columns, *COMMON_COLUMNS),
            conditions=(*conditions, "Ready"),
        )
        return resource

    return define
