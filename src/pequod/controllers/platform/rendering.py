"""A module and the input of a Transform become what is stored, unless something is against it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from pequod.api import reasons
from pequod.api.graph import GraphMetadata, Violation
from pequod.api.platform import Transform
from pequod.controllers.frontend.compiling import Compiled, compiled
from pequod.controllers.platform.policies import PlatformPolicies
from pequod.evaluator.errors import EvaluationError, UnavailableError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.graph.digests import Digests
from pequod.graph.model import InvalidGraphError, checked
from pequod.policy import cue, rulings
from pequod.policy.rulings import Override
from pequod.render.cue import Rendering, render
from pequod.runtime.verdicts import Stalled
from pequod.sources.artifact import Artifact
from pequod.sources.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What became of a Transform, and what there is to say about it."""

    made: Compiled | None
    """None when something is against it."""
    violations: tuple[Violation, ...] = ()


class NotRenderedError(Exception):
    """The module could not be evaluated, or yields something that is no graph."""

    def __init__(self, error: EvaluationError) -> None:
        super().__init__(error.told)
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """Renders Transforms and asks the platform's policies about them."""

    evaluator: Evaluator
    policies: PlatformPolicies
    store: Store
    digests: Digests

    async def rendered(
        self, transform: Transform, module: Artifact, *, graph: str, now: datetime
    ) -> Rendered:
        """Everything that is wrong with a Transform, or what is stored for it.

        Raises NotRenderedError, OverrideRefusedError, or the error of a source.
        """
        metadata, spec = transform.metadata, transform.spec
        namespace = metadata.namespace or ""
        async with self._tree(module, spec.cue_ref.path or "") as tree:
            try:
                rendering = await render(
                    self.evaluator,
                    tree,
                    spec.input,
                    name=metadata.name,
                    namespace=namespace,
                    owner=namespace,
                )
            except EvaluationError as error:
                if error.transient:
                    raise
                raise NotRenderedError(error) from error
        found = [rulings.told(one) for one in rendering.violations]
        found += await self._judged(transform, rendering)
        violations = rulings.shown(found)
        if rendering.graph is None or rulings.refuses(found):
            return Rendered(made=None, violations=violations)
        origin = GraphMetadata(
            version=module.revision[:253],
            platform_ref=f"{spec.cue_ref.type}:{_shown(transform)}@{module.digest}"[:2048],
        )
        made = compiled(rendering.graph, name=graph, digests=self.digests, origin=origin, now=now)
        _require_executable(made)
        return Rendered(made=made, violations=violations)

    async def _judged(self, transform: Transform, rendering: Rendering) -> tuple[Violation, ...]:
        overrides = [
            Override(name=one.name, action=one.action, parameters=one.parameters)
            for one in transform.spec.policies
        ]
        metadata = transform.metadata
        artifact = await self.policies.current(metadata.namespace or "")
        if artifact is None:
            rulings.require_allowed((), overrides)
            return ()
        subject: dict[str, Any] = {
            "input": transform.spec.input,
            "context": {"name": metadata.name, "namespace": metadata.namespace},
        }
        if rendering.graph is not None:
            subject["graph"] = msgspec.to_builtins(rendering.graph)
        async with self._tree(artifact, "") as tree:
            return await self._asked(tree, subject, overrides, metadata.namespace or "")

    async def _asked(
        self, tree: Tree, subject: Mapping[str, Any], overrides: list[Override], owner: str
    ) -> tuple[Violation, ...]:
        try:
            return await cue.judged(self.evaluator, tree, subject, overrides, owner=owner)
        except EvaluationError as error:
            if error.transient:
                raise
            # The platform's mistake, not the tenant's: nothing is let through because of it.
            told = f"the platform's policies cannot be evaluated: {error.told}"
            raise UnavailableError(f"{told}; tell those who run it") from error

    @asynccontextmanager
    async def _tree(self, artifact: Artifact, path: str) -> AsyncIterator[Tree]:
        async with self.store.using(artifact.digest) as place:
            if place is None:
                self.policies.forget(artifact)
                raise TreeGoneError(f"the tree {artifact.digest} is fetched anew")
            yield Tree(root=place, digest=artifact.digest, path=path)


class TreeGoneError(Exception):
    """A tree was evicted before it was used."""

    reason = reasons.FETCH_FAILED


def _require_executable(made: Compiled) -> None:
    """A graph that the engine would refuse is not stored over one that runs."""
    if not made.nodes:
        raise Stalled(
            reasons.INVALID_GRAPH,
            "the module renders no object for this input, which would delete everything: correct "
            "the input or the module, or delete the Transform",
        )
    try:
        checked(made.nodes)
    except InvalidGraphError as error:
        raise Stalled(reasons.INVALID_GRAPH, f"the module's graph: {error}") from error


def _shown(transform: Transform) -> str:
    reference = transform.spec.cue_ref
    return "" if reference.type == "inline" else reference.ref.partition("?")[0]
