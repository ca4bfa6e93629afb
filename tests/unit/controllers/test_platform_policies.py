"""Which policies are in force where."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from pequod.api.meta import ObjectMeta
from pequod.controllers.platform.policies import (
    LABEL,
    PlatformPolicies,
    Sets,
)
from pequod.kube.objects import Described, Key
from pequod.runtime.verdicts import Stalled
from pequod.sources.artifact import Artifact
from pequod.sources.resolver import Reference

COMMON, STRICT = (Reference(type="embedded", ref=name) for name in ("common", "strict"))


@dataclass
class Resolving:
    """Resolves whatever it is asked for, and counts."""

    asked: list[str] = field(default_factory=list)

    async def resolve(self, reference: Reference) -> Artifact:
        self.asked.append(reference.ref)
        now = datetime.now(UTC)
        return Artifact(digest=reference.ref, revision="v1", tree=Path("/"), fetched_at=now)


@dataclass
class Namespaces:
    labels: dict[str, str]

    def get(self, key: Key) -> Described | None:
        if key.name not in self.labels:
            return None
        labels = {LABEL: self.labels[key.name]}
        return Described(ObjectMeta(name=key.name, labels=labels))


def policies(sets: Sets, **labels: str) -> tuple[PlatformPolicies, Resolving]:
    resolving = Resolving()
    made: Any = PlatformPolicies(cast("Any", resolving), sets, cast("Any", Namespaces(labels)))
    return made, resolving


async def test_a_namespace_has_the_set_that_its_label_names_and_others_the_default() -> None:
    made, resolving = policies({"": COMMON, "strict": STRICT}, prod="strict")
    for namespace, expected in (("prod", "strict"), ("dev", "common"), ("prod", "strict")):
        found = await made.current(namespace)
        assert found is not None
        assert found.digest == expected
    assert resolving.asked == ["strict", "common"], "each is resolved once in a while"


async def test_a_set_may_be_empty_and_one_that_is_not_known_stops() -> None:
    made, _ = policies({"": None}, prod="strict")
    assert await made.current("dev") is None
    with pytest.raises(Stalled, match="Namespace prod asks for the policies strict"):
        await made.current("prod")


async def test_policies_whose_tree_is_gone_are_resolved_again() -> None:
    made, resolving = policies({"": COMMON})
    found = await made.current("dev")
    assert found is not None
    made.forget(found)
    await made.current("dev")
    assert resolving.asked == ["common", "common"]
