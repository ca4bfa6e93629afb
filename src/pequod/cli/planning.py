"""What `pequod plan` works with: the same parts as the operator's, in the user's own name."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NoReturn

import msgspec

from pequod.api.graph import Adopt, Violation
from pequod.api.platform import API_VERSION, ResourceGraph, Transform
from pequod.cli import cluster, terminal
from pequod.cli.moduleplace import place_of
from pequod.cli.workbench import store_folder
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.storing import GRAPHS
from pequod.controllers.platform.modules import fetch_module
from pequod.controllers.platform.planning import subject_of, wanted
from pequod.controllers.platform.policies import DEFAULT, PlatformPolicies
from pequod.controllers.platform.rendering import NotRenderedError, Renderer
from pequod.controllers.platform.transform import transform_source
from pequod.dev.places import shipped
from pequod.dev.programs import find_evaluator
from pequod.evaluator.errors import EvaluationError
from pequod.evaluator.evaluator import Evaluator
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results
from pequod.graph.digests import KEY_BYTES, Digests
from pequod.graph.model import InvalidGraphError
from pequod.graph.plan import Plan, Planning, Subject
from pequod.kube.addresses import AddressRule
from pequod.kube.client import Client
from pequod.kube.discovery import Discovery
from pequod.kube.errors import NotFoundError
from pequod.policy.rulings import OverrideRefusedError
from pequod.runtime.verdicts import Verdict
from pequod.sources.errors import SourceError
from pequod.sources.library import Library, LibraryOptions, opened
from pequod.sources.resolver import Reference

_WRONG = 2
_PLANNED = ((API_VERSION, "Transform"), (API_VERSION, "ResourceGraph"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One document of a file, and what would become of it."""

    name: str
    plan: Plan | None
    """None when it would be refused."""
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Renders, judges and plans."""

    client: Client
    evaluator: Evaluator
    library: Library
    renderer: Renderer

    async def documents(self, name: str, text: str) -> list[dict[str, Any]]:
        """What a file holds."""
        try:
            found = await self.evaluator.documents(text, name=name)
        except EvaluationError as error:
            _end(f"{name}: {error}", "Correct the file; YAML and JSON are understood.")
        documents = [one for one in found if isinstance(one, dict)]
        known = [one for one in documents if (one.get("apiVersion"), one.get("kind")) in _PLANNED]
        if not known:
            _end(
                f"{name} holds no Transform and no ResourceGraph",
                f"Write one of apiVersion {API_VERSION}.",
            )
        return known

    async def judged(self, document: dict[str, Any], namespace: str) -> Judged:
        """What would become of a document."""
        metadata = document.get("metadata")
        document["status"] = {}
        if isinstance(metadata, dict):
            metadata.setdefault("namespace", namespace)
        name = f"{document.get('kind')} {_name(metadata)}"
        try:
            return await self._judged(document)
        except msgspec.ValidationError as error:
            _end(f"{name}: {error}", "Correct the file.")
        except InvalidGraphError as error:
            _end(f"{name}: {error}", "Correct the nodes.")
        except (Verdict, SourceError, NotRenderedError, OverrideRefusedError) as error:
            _end(f"{name}: {error}", "Correct what it names.")

    async def _judged(self, document: dict[str, Any]) -> Judged:
        if document.get("kind") == "ResourceGraph":
            return await self._graph(msgspec.convert(document, ResourceGraph))
        return await self._transform(msgspec.convert(document, Transform))

    async def _transform(self, transform: Transform) -> Judged:
        source = transform_source(transform)
        name = f"Transform {source.namespace}/{transform.metadata.name}"
        with terminal.waiting(f"Planning {name}"):
            module = await fetch_module(
                self.library, transform.spec.cue_ref, source.namespace, self.client
            )
            rendered = await self.renderer.rendered(
                transform, module, graph=source.graph, now=datetime.now(UTC)
            )
            if rendered.made is None:
                return Judged(name=name, plan=None, violations=rendered.violations)
            graph = await self._stored(source.namespace, source.graph)
            plan = await self._planned(graph, rendered.made, source.namespace, transform.spec.adopt)
        return Judged(name=name, plan=plan, violations=rendered.violations)

    async def _graph(self, graph: ResourceGraph) -> Judged:
        namespace = graph.metadata.namespace or ""
        made = Compiled(nodes=graph.spec.nodes, metadata=graph.spec.metadata, sensitive={})
        known = await self._stored(namespace, graph.metadata.name)
        name = f"ResourceGraph {namespace}/{graph.metadata.name}"
        return Judged(name=name, plan=await self._planned(known, made, namespace, graph.spec.adopt))

    async def _planned(
        self, graph: ResourceGraph | None, made: Compiled, namespace: str, adopt: Adopt | None
    ) -> Plan:
        subject = Subject(namespace=namespace, adopt=adopt)
        if graph is not None:
            subject = subject_of(graph, namespace, adopt)
        planning = Planning(self.client, Discovery(self.client))
        return await planning.planned(subject, wanted(made))

    async def _stored(self, namespace: str, name: str) -> ResourceGraph | None:
        try:
            return await self.client.get(GRAPHS, name, namespace=namespace, type=ResourceGraph)
        except NotFoundError:
            return None


@asynccontextmanager
async def workshop(client: Client, policies: str) -> AsyncIterator[Workshop]:
    """Everything that a plan needs, for as long as the block lasts."""
    with terminal.build_progress() as report:
        program = await find_evaluator(report)
    pool = Pool((str(program),), size=1)
    options = LibraryOptions(
        root=store_folder(),
        modules=shipped("modules"),
        version=version("pequod"),
        rule=AddressRule(allow_local=True),
        plain_http=frozenset({"localhost", "127.0.0.1", "[::1]"}),
    )
    try:
        async with opened(options, program) as library:
            evaluator = Evaluator(pool, Results(), version="")
            renderer = Renderer(
                evaluator=evaluator,
                policies=PlatformPolicies(library.resolver, {DEFAULT: _reference(policies)}),
                store=library.store,
                # Nothing of it is stored: any key will do.
                digests=Digests(secrets.token_bytes(KEY_BYTES)),
            )
            yield Workshop(client=client, evaluator=evaluator, library=library, renderer=renderer)
    finally:
        await pool.close()


def _reference(policies: str) -> Reference | None:
    if policies == "off":
        return None
    reference = place_of(policies).reference()
    if reference is None:
        _end(f"--policies: {policies} is a folder", "Give embedded:NAME, oci://…, git+https://….")
    return reference


def _name(metadata: object) -> str:
    found = metadata.get("name") if isinstance(metadata, dict) else None
    return str(found or "without a name")


def _end(problem: str, next_step: str) -> NoReturn:
    cluster.end(problem, next_step, _WRONG)
