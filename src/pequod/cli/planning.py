"""What `pequod plan` works with: the same parts as the operator's, in the user's own name."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NoReturn

import msgspec

from pequod.api import reasons
from pequod.api.graph import Violation
from pequod.api.platform import API_VERSION, ResourceGraph, Transform
from pequod.cli import cluster, terminal
from pequod.cli.documents import (
    SUSPENDED,
    TRANSFORMS,
    pauses,
    require_accepted,
    stored_transform,
)
from pequod.cli.moduleplace import place_of
from pequod.cli.workbench import store_folder
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.storing import GRAPHS
from pequod.controllers.platform.modules import fetch_module
from pequod.controllers.platform.planning import (
    Others,
    accounts_of,
    standing,
    subject_of,
    wanted,
)
from pequod.controllers.platform.policies import DEFAULT, PlatformPolicies
from pequod.controllers.platform.rendering import NotRenderedError, Renderer
from pequod.controllers.platform.running import Runs
from pequod.controllers.platform.transform import transform_source
from pequod.dev.places import shipped
from pequod.dev.programs import find_evaluator
from pequod.evaluator.errors import EvaluationError
from pequod.evaluator.evaluator import Evaluator
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results
from pequod.graph.digests import KEY_BYTES, Digests
from pequod.graph.model import InvalidGraphError
from pequod.graph.plan import Plan
from pequod.graph.planning import Planning
from pequod.graph.probes import Probes
from pequod.graph.reach import Reach
from pequod.kube.addresses import AddressRule
from pequod.kube.client import METADATA_ONLY_LIST, Client, decoded
from pequod.kube.discovery import Discovery
from pequod.kube.errors import BadRequestError, ForbiddenError, InvalidError, NotFoundError
from pequod.kube.objects import Named
from pequod.policy.rulings import OverrideRefusedError
from pequod.runtime.controller import is_suspended
from pequod.runtime.verdicts import Verdict
from pequod.settings import NAMESPACE
from pequod.sources.errors import SourceError
from pequod.sources.library import Library, LibraryOptions, opened
from pequod.sources.resolver import Reference

_WRONG = 2
_NO_IDENTITY = (
    "the graph has no source, and names no account that it is executed for: name one in "
    "spec.serviceAccountName"
)
_AGREE = "if that is meant, apply it, and agree as the condition Pruned of the graph says"
_PLANNED = ((API_VERSION, "Transform"), (API_VERSION, "ResourceGraph"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One document of a file, and what would become of it."""

    name: str
    plan: Plan | None = None
    """None when it would be refused, or cannot be planned."""
    unplanned: str = ""
    """Why there is no plan, although nothing is against it."""
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    """What else there is to know about all of it."""


class LivingGraphs:
    """The graphs of a cluster, as far as the user may know of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asking: asyncio.Task[set[str] | None] | None = None

    async def have(self, uid: str) -> bool:
        """Whether there is a graph of a UID; whoever may not ask takes it for a living one."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._uids())
        known = await asyncio.shield(self._asking)
        return known is None or uid in known

    async def _uids(self) -> set[str] | None:
        found: set[str] = set()
        try:
            async for page in self._client.pages(GRAPHS, accept=METADATA_ONLY_LIST):
                found |= {decoded(raw, Named).metadata.uid for raw in page.items or ()}
        except ForbiddenError:
            return None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Renders, judges and plans."""

    client: Client
    discovery: Discovery
    living: LivingGraphs
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
        except (msgspec.ValidationError, BadRequestError, InvalidError) as error:
            _end(f"{name}: {error}", "Correct the file.")
        except InvalidGraphError as error:
            _end(f"{name}: {error}", "Correct the nodes.")
        except (Verdict, SourceError, NotRenderedError, OverrideRefusedError) as error:
            _end(f"{name}: {error}", "Correct what it names.")

    async def _judged(self, document: dict[str, Any]) -> Judged:
        if document.get("kind") == "ResourceGraph":
            graph = msgspec.convert(document, ResourceGraph)
            notes = await require_accepted(self.client, GRAPHS, document)
            judged = await self._graph(graph)
            return replace(judged, notes=(*judged.notes, *notes))
        transform = msgspec.convert(document, Transform)
        notes = await require_accepted(self.client, TRANSFORMS, document)
        stored = await stored_transform(self.client, transform)
        if stored is not None:
            told = stored.metadata.annotations | transform.metadata.annotations
            transform.metadata.annotations = told
        judged = await self._transform(transform)
        notes = (*judged.notes, *notes, *pauses(document, transform, stored))
        return replace(judged, notes=notes)

    async def _transform(self, transform: Transform) -> Judged:
        source = transform_source(transform)
        name = f"Transform {source.namespace}/{transform.metadata.name}"
        if transform.spec.rollback_to is not None:
            return Judged(name=name, unplanned=_returns(transform.spec.rollback_to))
        with terminal.waiting(f"Planning {name}"):
            module = await fetch_module(
                self.library, transform.spec.cue_ref, source.namespace, self.client
            )
            rendered = await self.renderer.rendered(
                transform, module, graph=source.graph, now=datetime.now(UTC)
            )
            if rendered.made is None:
                return Judged(name=name, violations=rendered.violations)
            if transform.spec.cluster_ref is not None:
                elsewhere = _elsewhere(transform.spec.cluster_ref.name)
                return Judged(name=name, unplanned=elsewhere, violations=rendered.violations)
            graph = Runs.preview(transform, source, rendered.made)
            plan = await self._planned(graph, rendered.made, transform.metadata.annotations)
        return Judged(name=name, plan=plan, violations=rendered.violations, notes=_notes(plan))

    async def _graph(self, graph: ResourceGraph) -> Judged:
        made = Compiled(nodes=graph.spec.nodes, metadata=graph.spec.metadata, sensitive={})
        name = f"ResourceGraph {graph.metadata.namespace}/{graph.metadata.name}"
        if graph.spec.service_account_name is None and graph.spec.source_ref is None:
            return Judged(name=name, notes=(_NO_IDENTITY,))
        if graph.spec.cluster_ref is not None:
            return Judged(name=name, unplanned=_elsewhere(graph.spec.cluster_ref.name))
        plan = await self._planned(graph, made, graph.metadata.annotations)
        notes = (SUSPENDED,) if is_suspended(graph) else ()
        return Judged(name=name, plan=plan, notes=(*_notes(plan), *notes))

    async def _planned(
        self, graph: ResourceGraph, made: Compiled, annotations: Mapping[str, str]
    ) -> Plan:
        """What would be done for a graph, if the operator's flags are the usual ones."""
        namespace = graph.metadata.namespace or ""
        stored = await self._stored(namespace, graph.metadata.name)
        graph = standing(graph, stored)
        reach = Reach(
            namespace=namespace,
            confined=graph.spec.service_account_name is None,
            operator_namespace=NAMESPACE,
            accounts=accounts_of(graph, made),
        )
        probes = Probes(self.client, self.evaluator, owner=namespace)
        planning = Planning(self.client, self.discovery, probes)
        subject = subject_of(
            graph,
            stored,
            reach=reach,
            annotations={**graph.metadata.annotations, **annotations},
            others=Others(lives=self.living.have),
        )
        if made.sensitive:
            # What an agreement is bound to has a key in it that only the operator knows.
            subject = replace(subject, way_out=_AGREE)
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
            yield Workshop(
                client=client,
                discovery=Discovery(client),
                living=LivingGraphs(client),
                evaluator=evaluator,
                library=library,
                renderer=renderer,
            )
    finally:
        await pool.close()


def _reference(policies: str) -> Reference | None:
    if policies == "off":
        return None
    reference = place_of(policies).reference()
    if reference is None:
        _end(f"--policies: {policies} is a folder", "Give embedded:NAME, oci://…, git+https://….")
    return reference


def _returns(number: int) -> str:
    return (
        f"would return to revision {number} (spec.rollbackTo), whatever its module and its input "
        "are; what that changes is not planned: remove the field to plan the input"
    )


def _elsewhere(cluster_name: str) -> str:
    return (
        f"would be executed on Cluster {cluster_name}, which the operator alone can reach: set "
        "spec.dryRun of a Transform to have it planned there"
    )


def _notes(plan: Plan) -> tuple[str, ...]:
    """What a plan takes for granted, where that decides something."""
    refused = {one.refused.reason for one in plan.refused if one.refused is not None}
    if reasons.OUT_OF_REACH not in refused:
        return ()
    return (
        "nothing of it would be applied while an object is out of reach; assumed is an operator in "
        f"the namespace {NAMESPACE} with --identity=confined, as it is without flags",
    )


def _name(metadata: object) -> str:
    found = metadata.get("name") if isinstance(metadata, dict) else None
    return str(found or "without a name")


def _end(problem: str, next_step: str) -> NoReturn:
    cluster.end(problem, next_step, _WRONG)
