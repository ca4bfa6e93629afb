"""The verbs, typed, cached and bounded."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pequod.evaluator import answers
from pequod.evaluator.errors import ModuleError
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results

T = TypeVar("T")
Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Files to evaluate, and the place among them that is meant."""

    root: Path
    digest: str = ""
    """Names the content; without it nothing is cached."""
    path: str = ""
    modules: Path | None = None
    """Where the CUE modules are that it imports, fetched beforehand."""

    def params(self) -> dict[str, str]:
        """As the Go side wants it."""
        return {
            "tree": str(self.root),
            "path": self.path,
            "digest": self.digest,
            "modules": str(self.modules or ""),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a chart gets to know about its release and the cluster."""

    name: str
    namespace: str
    values: Value = field(default_factory=dict)
    revision: int = 1
    upgrade: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


class Evaluator:
    """Asks the pool, or remembers."""

    def __init__(self, pool: Pool, results: Results, *, version: str) -> None:
        self._pool = pool
        self._results = results
        self._version = version

    async def usable(self) -> str:
        """Say that a worker answers; raises an EvaluationError when none does."""
        return await self._pool.usable()

    async def check_input(
        self, module: Tree, given: object, context: Value | None = None, *, owner: str = ""
    ) -> answers.Rendered:
        """Everything that is wrong with an input."""
        params = {**module.params(), "input": given, "context": context or {}}
        return await self._cached("cue.input", module, params, answers.Rendered, owner)

    async def render(
        self, module: Tree, given: object, context: Value, *, owner: str = ""
    ) -> answers.Rendered:
        """The graph that a module makes of an input; without one when there are violations."""
        params = {**module.params(), "input": given, "context": context}
        return await self._cached("cue.render", module, params, answers.Rendered, owner)

    async def policies(
        self,
        module: Tree,
        subject: Value,
        *,
        parameters: Mapping[str, Value] | None = None,
        owner: str = "",
    ) -> tuple[answers.PolicyVerdict, ...]:
        """What every policy of a package says of `input`, `context` and, once rendered, `graph`."""
        params = {**module.params(), **subject, "parameters": parameters or {}}
        found = await self._cached("cue.policy", module, params, answers.Policies, owner)
        return found.policies

    async def input_schema(self, module: Tree, *, owner: str = "") -> dict[str, Any]:
        """What a module takes, as JSON Schema."""
        return await self._cached("cue.schema", module, module.params(), dict[str, Any], owner)

    async def chart(self, chart: Tree, release: Release, *, owner: str = "") -> answers.Chart:
        """A chart, rendered without a cluster."""
        params = {
            **chart.params(),
            "release": release.name,
            "namespace": release.namespace,
            "values": release.values,
            "revision": release.revision,
            "upgrade": release.upgrade,
            "kubeVersion": release.kube_version,
            "apiVersions": release.api_versions,
        }
        return await self._cached("helm", chart, params, answers.Chart, owner)

    async def kustomization(self, tree: Tree, *, owner: str = "") -> tuple[dict[str, Any], ...]:
        """What kustomize builds of a folder."""
        built = await self._cached("kustomize", tree, tree.params(), answers.Objects, owner)
        return built.objects

    async def rego(
        self, tree: Tree, given: object, *, owner: str = ""
    ) -> tuple[answers.Finding, ...]:
        """What the rules deny, warn and violation of a tree find."""
        params = {**tree.params(), "input": given}
        found = await self._cached("rego", tree, params, answers.Findings, owner)
        return found.findings

    async def cel(
        self,
        expressions: Sequence[str],
        variables: Value,
        *,
        cost_limit: int = 1_000_000,
        owner: str = "",
    ) -> tuple[answers.CelAnswer, ...]:
        """The values of expressions over live objects, which are never kept."""
        params = {"expressions": expressions, "variables": variables, "costLimit": cost_limit}
        raw = await self._pool.ask("cel", params, owner=owner)
        return _decoded(raw, answers.CelAnswers).answers

    async def validate(
        self, definitions: Sequence[Value], objects: Sequence[Value], *, owner: str = ""
    ) -> answers.Validation:
        """What CustomResourceDefinitions have against objects."""
        params = {"definitions": definitions, "objects": objects}
        return _decoded(await self._pool.ask("crd", params, owner=owner), answers.Validation)

    async def documents(self, text: str, *, name: str, owner: str = "") -> tuple[Any, ...]:
        """The documents of YAML or JSON that somebody else wrote."""
        raw = await self._pool.ask("yaml", {"name": name, "text": text}, owner=owner)
        return _decoded(raw, answers.Documents).documents

    async def _cached(self, verb: str, tree: Tree, params: Value, answer: type[T], owner: str) -> T:
        async def evaluate() -> bytes:
            return bytes(await self._pool.ask(verb, params, owner=owner))

        if not tree.digest:
            return _decoded(await evaluate(), answer)
        # Where a tree lies does not change what it holds; the folder of imports is named for
        # the registry and the credentials that they were fetched with.
        keyed = {**params, "tree": ""}
        return _decoded(await self._results.get(self._key(verb, keyed), evaluate), answer)

    def _key(self, verb: str, params: Value) -> str:
        text = msgspec.json.encode([self._version, verb, params], order="deterministic")
        return hashlib.sha256(text).hexdigest()


def _decoded(raw: bytes | msgspec.Raw, answer: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=answer)
    except msgspec.DecodeError as error:
        raise ModuleError(f"the result is not of the shape that it must have: {error}") from error


async def program_version(program: Path) -> str:
    """The digest of the evaluator: another program may answer otherwise."""

    def digest() -> str:
        with program.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return await asyncio.to_thread(digest)
