"""What the tests of a module expect, and how what happened differs from it.

A test is a YAML file `tests/<case>_test.yaml` in the module, with `input`, `context` and `expect`;
for a package of policies also `graph` and `parameters`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pequod.evaluator.answers import PolicyVerdict, Rendered, Violation


class ExpectedViolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One violation, by its path and a part of its message."""

    path: str
    message: str = ""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is compared; what is absent is not."""

    graph: dict[str, Any] | None = None
    """The whole graph, exactly."""
    objects: tuple[str, ...] | None = None
    """`Kind/name` of every object, in order."""
    violations: tuple[ExpectedViolation, ...] | None = None
    """All of them, in any order."""
    policies: dict[str, tuple[str, ...]] | None = None
    """Paths that each policy finds; a policy that is not named finds nothing."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One test of a module."""

    expect: Expectation
    input: Any = {}
    context: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"name": "test", "namespace": "default"}
    )
    graph: dict[str, Any] | None = None
    parameters: dict[str, dict[str, Any]] = {}


def differences(expected: Expectation, happened: Rendered) -> list[str]:
    """In what a rendering is not what was expected; nothing when it is."""
    found: list[str] = []
    if expected.violations is not None:
        found += _violations(expected.violations, happened.violations)
    elif any(violation.severity == "Error" for violation in happened.violations):
        found += [f"unexpected violation {_told(one)}" for one in happened.violations]
    if expected.objects is not None:
        objects = [_named(node) for node in (happened.graph or {}).get("nodes", ())]
        if list(expected.objects) != objects:
            found.append(f"objects are {', '.join(objects) or 'none'}")
    if expected.graph is not None:
        found += _unequal(expected.graph, happened.graph, "graph")
    return found


def policy_differences(
    expected: Mapping[str, Sequence[str]], happened: Sequence[PolicyVerdict]
) -> list[str]:
    """The same for a package of policies."""
    names = {verdict.name for verdict in happened}
    found = [f"there is no policy {name}" for name in expected if name not in names]
    for verdict in happened:
        paths = sorted(violation.path for violation in verdict.violations)
        if paths != sorted(expected.get(verdict.name, ())):
            found.append(f"{verdict.name} finds {', '.join(paths) or 'nothing'}")
    return found


def _violations(
    expected: Sequence[ExpectedViolation], happened: Sequence[Violation]
) -> Iterator[str]:
    left = list(happened)
    for wanted in expected:
        match = next(
            (one for one in left if one.path == wanted.path and wanted.message in one.message),
            None,
        )
        if match is None:
            yield f"no violation {wanted.path}: {wanted.message}"
        else:
            left.remove(match)
    yield from (f"unexpected violation {_told(one)}" for one in left)


def _told(violation: Violation) -> str:
    return f"{violation.path}: {violation.message}"


def _named(node: Mapping[str, Any]) -> str:
    described = node.get("object", {})
    return f"{described.get('kind')}/{described.get('metadata', {}).get('name')}"


def _unequal(expected: object, happened: object, path: str) -> Iterator[str]:
    """Each place in which two values differ."""
    if isinstance(expected, Mapping) and isinstance(happened, Mapping):
        for key in sorted({*expected, *happened}, key=str):
            below = f"{path}.{key}"
            if key not in happened:
                yield f"{below} is missing"
            elif key not in expected:
                yield f"{below} is not expected"
            else:
                yield from _unequal(expected[key], happened[key], below)
    elif isinstance(expected, list) and isinstance(happened, list):
        if len(expected) != len(happened):
            yield f"{path} has {len(happened)} items instead of {len(expected)}"
        for number, (one, other) in enumerate(zip(expected, happened, strict=False)):
            yield from _unequal(one, other, f"{path}[{number}]")
    elif expected != happened or type(expected) is not type(happened):
        yield f"{path} is {happened!r} instead of {expected!r}"
