"""What the evaluator answers, verb by verb."""

from typing import Any, Literal

import msgspec

from pequod.evaluator.frames import Failure

Severity = Literal["Error", "Warning", "Info"]


class Violation(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that is wrong with an input, for somebody who has never seen CUE."""

    path: str
    message: str
    severity: Severity = "Error"
    cue_path: str = ""
    position: str = ""
    """File, line and column of the constraint, relative to the tree."""


class Rendered(msgspec.Struct, frozen=True):
    """The graph of an input, or why there is none."""

    violations: tuple[Violation, ...] = ()
    graph: dict[str, Any] | None = None


class PolicyVerdict(msgspec.Struct, frozen=True):
    """One policy, and what it found."""

    name: str
    stage: Literal["input", "graph"] = "graph"
    action: Literal["Enforce", "Warn", "Ignore"] = "Enforce"
    description: str = ""
    overridable: bool = False
    parameters: dict[str, Any] = {}
    violations: tuple[Violation, ...] = ()


class Policies(msgspec.Struct, frozen=True):
    """All policies of a package."""

    policies: tuple[PolicyVerdict, ...]


class Hook(msgspec.Struct, frozen=True, rename="camel"):
    """An object that Helm applies at a moment of a release's life."""

    object: dict[str, Any]
    events: tuple[str, ...] = ()
    weight: int = 0
    delete_policies: tuple[str, ...] = ()


class Chart(msgspec.Struct, frozen=True, rename="camel"):
    """A chart, rendered."""

    name: str
    version: str
    app_version: str = ""
    objects: tuple[dict[str, Any], ...] = ()
    hooks: tuple[Hook, ...] = ()
    crds: tuple[dict[str, Any], ...] = ()
    notes: str = ""


class Objects(msgspec.Struct, frozen=True):
    """Objects, in the order in which they are to be applied."""

    objects: tuple[dict[str, Any], ...]


class Documents(msgspec.Struct, frozen=True):
    """The documents of a text; a List became its items."""

    documents: tuple[Any, ...]


class Finding(msgspec.Struct, frozen=True):
    """One result of a Rego rule."""

    package: str
    rule: str
    kind: Literal["deny", "warn", "violation"]
    message: str
    metadata: dict[str, Any] = {}


class Findings(msgspec.Struct, frozen=True):
    """Everything that the rules of a tree found."""

    findings: tuple[Finding, ...]


class CelAnswer(msgspec.Struct, frozen=True):
    """The value of an expression, or why it has none."""

    value: Any = None
    cost: int = 0
    failure: Failure | None = None


class CelAnswers(msgspec.Struct, frozen=True):
    """One answer for each expression."""

    answers: tuple[CelAnswer, ...]


class SchemaProblem(msgspec.Struct, frozen=True):
    """What a CustomResourceDefinition has against an object."""

    object: int
    """Its place in the list of objects."""
    path: str
    message: str


class Validation(msgspec.Struct, frozen=True):
    """What was found, and the objects that no definition was for."""

    problems: tuple[SchemaProblem, ...]
    unknown: tuple[int, ...]
