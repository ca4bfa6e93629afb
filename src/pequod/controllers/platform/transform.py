"""Transform: a CUE module and its input, kept in step with one ResourceGraph."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pequod.api import reasons
from pequod.api.meta import ObjectReference
from pequod.api.platform import ResolvedCueReference, ResourceGraph, Transform
from pequod.controllers.frontend import ending, following
from pequod.controllers.frontend.revisions import PROJECTION, REVISIONS, SELECTION
from pequod.controllers.frontend.sources import WRITES_GRAPHS, source_of, woken_by_graphs
from pequod.controllers.frontend.storing import GRAPHS, Source
from pequod.controllers.platform import policies
from pequod.controllers.platform.modules import Modules
from pequod.controllers.platform.planning import Planner
from pequod.controllers.platform.rendering import (
    NotRenderedError,
    Rendered,
    Renderer,
    TreeGoneError,
)
from pequod.controllers.platform.running import Running, Runs
from pequod.kube.cache import Cache, Index
from pequod.kube.client import Client
from pequod.kube.errors import FencedError
from pequod.kube.kinds import NAMESPACES
from pequod.kube.objects import Key
from pequod.policy import rulings
from pequod.policy.rulings import OverrideRefusedError
from pequod.runtime.context import Context
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.triggers import Trigger
from pequod.runtime.verdicts import Result, Stalled, Waiting
from pequod.sources.artifact import Artifact

NAMESPACE = "namespace"
LATE = 10.0
"""Seconds after which it is told what was rendered, whatever became of it."""
AGAIN = 600.0
"""Seconds after which something is looked at again that the platform may have changed."""

Phase = Literal["Pending", "Fetching", "Executing", "Failed"]


@dataclass(frozen=True, slots=True)
class _Known:
    """What was rendered last: the same question has the same answer."""

    question: tuple[object, ...]
    rendered: Rendered = field(repr=False)


class TransformReconciler(Reconciler[Transform]):
    """Fetches a module, renders it, and keeps the graph that comes of it."""

    kind = Transform
    finalizer = "pequod.io/transform"
    permissions = (
        WRITES_GRAPHS,
        Permission(
            group="apps",
            resources=("controllerrevisions",),
            verbs=("get", "list", "watch", "create", "delete"),
        ),
        Permission(resources=("secrets",), verbs=("get", "list", "watch", "create", "delete")),
        Permission(resources=("configmaps", "namespaces"), verbs=("get", "list", "watch")),
        Permission(resources=("serviceaccounts",), verbs=("get", "impersonate")),
    )
    concurrency = 16
    triggers = (
        woken_by_graphs(Transform),
        # Revisions wake nobody, but nothing is rendered before all of them are known.
        Trigger(REVISIONS, PROJECTION, lambda _revision, _lookup: (), SELECTION),
        Trigger(
            NAMESPACES,
            policies.PROJECTION,
            lambda found, lookup: lookup(NAMESPACE, found.metadata.name),
        ),
    )
    indexes: ClassVar[dict[str, Index[Transform]]] = {
        NAMESPACE: lambda transform: (transform.metadata.namespace or "",)
    }
    quiet: ClassVar[frozenset[str]] = frozenset(
        {"Fetched", "Validated", "Rendered", "Executed", "Ready"}
    )
    linger = 3.0
    patient = True

    def __init__(
        self, own: Client, modules: Modules, renderer: Renderer, runs: Runs, planner: Planner
    ) -> None:
        self._own = own
        self._modules = modules
        self._renderer = renderer
        self._runs = runs
        self._planner = planner
        self._rendered: dict[Key, _Known] = {}
        self._going: set[str] = set()
        """Graphs of deleted Transforms that were seen on their way out."""
        self._untold: dict[Key, tuple[str, float]] = {}
        """Revisions that were stored and not told of yet, and since when."""
        self._wake: Callable[[Key], None] = lambda _key: None
        self._alarms: dict[Key, asyncio.TimerHandle] = {}
        """Ends of the time that revisions have, where errors delay the next pass."""

    def attach(self, wake: Callable[[Key], None], cache: Cache[Transform]) -> None:
        """Wake Transforms whose modules were fetched in the background."""
        del cache
        self._wake = self._modules.wake = wake

    def pace(self, object_: Transform) -> float:  # noqa: ARG002 -- the same for all
        """What is on its way need not be said at once."""
        return 0.25

    async def reconcile(self, object_: Transform, ctx: Context) -> Result:
        """Fetch, check, render, store, and tell what the graph tells."""
        status, before = object_.status, object_.status.phase
        status.phase = "Failed"
        try:
            message, after = await self._done(object_, ctx)
            status.phase = "Ready"
        except Waiting as verdict:
            status.phase = _phase(verdict)
            raise
        except Stalled:
            raise
        except Exception:
            # What was known stays, as it does in the conditions.
            status.phase = before
            raise
        return Result(message=message, after=after)

    async def _done(self, transform: Transform, ctx: Context) -> tuple[str, float | None]:
        source = transform_source(transform)
        _forget_the_past(transform)
        if transform.spec.rollout is not None and transform.spec.rollout.strategy == "Canary":
            raise Stalled(
                reasons.UNSUPPORTED,
                "spec.rollout.strategy Canary is not there yet: use AllAtOnce; what runs stays as "
                "it is",
            )
        if transform.spec.rollback_to is not None:
            self._modules.forget(ctx.key)
            _require_no_dry_run(transform)
            return await self._returned(transform, source, ctx), None
        left = await self._runs.judged(transform, source, ctx)
        self._tell_returned(transform, source, ctx)
        async with self._going_on(source, left, ctx):
            rendered = await self._made(transform, source, ctx)
            after = self._modules.after(transform, ctx.key)
            if transform.spec.dry_run:
                await self._planned(transform, source, rendered, ctx, after)
        with ctx.step("Rendered") as step:
            running = await self._runs.stored(transform, source, rendered, ctx)
            step.message = running.told
        return self._followed(transform, running, ctx, after), after

    async def _returned(self, transform: Transform, source: Source, ctx: Context) -> str:
        """Run an earlier revision; neither its module nor its input is needed for that."""
        number = transform.spec.rollback_to or 0
        transform.status.violations = ()
        told = f"not needed: revision {number} is asked for (spec.rollbackTo)"
        for name in ("Fetched", "Validated"):
            with ctx.step(name) as step:
                step.reason, step.message = reasons.ROLLED_BACK, told
        with ctx.step("Rendered") as step:
            running = await self._runs.returned(transform, source, number, ctx)
            step.reason, step.message = reasons.ROLLED_BACK, running.told
        message = self._followed(transform, running, ctx, None)
        return f"revision {number} (spec.rollbackTo): {message}"

    def _followed(
        self, transform: Transform, running: Running, ctx: Context, after: float | None
    ) -> str:
        """What the graph says; raises a verdict while it is not Ready."""
        transform.status.resource_graph_ref = _reference(running.graph)
        if running.is_new:
            self._untold[ctx.key] = (running.told, _clock())
        try:
            with ctx.step("Executed") as step:
                step.message = following.executed(
                    running.graph, after=_soonest(after, running.left)
                )
        except Waiting as verdict:
            self._tell_late(ctx)
            running.require_hope(verdict)
            raise
        running.require_wanted()
        self._tell_ready(transform, step.message, ctx)
        return step.message

    def _tell_ready(self, transform: Transform, message: str, ctx: Context) -> None:
        """Tell of a Transform that has become Ready, and of what was rendered for that."""
        rendered, _ = self._untold.pop(ctx.key, ("", 0.0))
        was = next((one.status for one in transform.status.conditions if one.type == "Ready"), "")
        if rendered or was != "True":
            ctx.tell(reasons.READY, f"{rendered} rendered; {message}" if rendered else message)

    def _tell_late(self, ctx: Context) -> None:
        """Tell of what was rendered when it takes longer to become Ready."""
        told, since = self._untold.get(ctx.key, ("", _clock()))
        if _clock() - since >= LATE:
            del self._untold[ctx.key]
            ctx.tell(reasons.RENDERED, told)

    def _tell_returned(self, transform: Transform, source: Source, ctx: Context) -> None:
        """Follow what was returned to, also while nothing can be rendered."""
        running = self._runs.returned_to(transform, source)
        if running is None or not _was_rendered(transform):
            return
        with ctx.step("Rendered") as step:
            step.message = running.told
        with suppress(Waiting), ctx.step("Executed") as step:
            step.message = following.executed(running.graph)

    @asynccontextmanager
    async def _going_on(
        self, source: Source, left: float | None, ctx: Context
    ) -> AsyncIterator[None]:
        """Whatever comes of it, what runs is executed, and given up when its time is over."""
        self._silence(ctx.key)
        try:
            yield
        except (Waiting, Stalled) as verdict:
            await self._runs.resume(source, ctx)
            # A verdict of its own: the one that was raised may be kept by whoever raised it.
            after = _soonest(verdict.after, left)
            raise type(verdict)(verdict.reason, verdict.message, after=after) from verdict
        except Exception:
            # The next pass after an error comes later each time; a deadline does not.
            if left is not None:
                loop = asyncio.get_running_loop()
                self._alarms[ctx.key] = loop.call_later(left, self._wake, ctx.key)
            await self._runs.resume(source, ctx)
            raise

    def _silence(self, key: Key) -> None:
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            alarm.cancel()

    async def _made(self, transform: Transform, source: Source, ctx: Context) -> Rendered:
        """What the module makes of the input; raises when something is against it."""
        with ctx.step("Fetched") as step:
            module = await self._modules.fetched(transform, ctx)
            step.message = module.revision
        _note_module(transform, module, ctx)
        made = await self._tried(transform, module, source, ctx)
        after = self._modules.after(transform, ctx.key)
        if isinstance(made, NotRenderedError):
            transform.status.violations, transform.status.plan = (), None
            with ctx.step("Rendered"):
                message = f"{made}{self._stays(transform, source)}"
                raise Stalled(made.error.reason, message, after=after) from made
        with ctx.step("Validated") as step:
            if isinstance(made, Stalled):
                transform.status.violations, transform.status.plan = (), None
                message = f"{made.message}{self._stays(transform, source)}"
                raise Stalled(made.reason, message, after=_soonest(made.after, after)) from made
            if isinstance(made, Exception):
                raise made
            transform.status.violations = made.violations
            if made.made is None:
                transform.status.plan = None
                message = f"{rulings.summary(made.violations)}{self._stays(transform, source)}"
                raise Stalled(reasons.VIOLATED, message, after=after)
            step.message = _let_pass(made)
        return made

    async def _tried(
        self, transform: Transform, module: Artifact, source: Source, ctx: Context
    ) -> Rendered | Exception:
        """The rendering, or why there is none: which condition that is about depends on it."""
        try:
            return await self._rendering(transform, module, source, ctx)
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 -- raised again where it belongs
            return error

    def _stays(self, transform: Transform, source: Source) -> str:
        """What becomes of what runs while nothing else is stored."""
        if not self._runs.hash_of(source):
            return ""
        running = self._runs.returned_to(transform, source)
        if running is None:
            return "; what runs stays as it is"
        given_up, used = running.wanted.number, running.stored.number
        return f"; revision {given_up} was given up, and revision {used} stays as it is"

    async def _rendering(
        self, transform: Transform, module: Artifact, source: Source, ctx: Context
    ) -> Rendered:
        """The rendering of a Transform, evaluated once for each question."""
        judges = await self._renderer.policies.current(ctx.key.namespace)
        question = (
            transform.metadata.uid,
            transform.metadata.generation,
            module.digest,
            judges.digest if judges else "",
        )
        known = self._rendered.get(ctx.key)
        if known is not None and known.question == question:
            return known.rendered
        try:
            rendered = await self._renderer.rendered(
                transform, module, graph=source.graph, now=ctx.now
            )
        except OverrideRefusedError as error:
            raise Stalled(error.reason, str(error), after=AGAIN) from error
        except TreeGoneError:
            self._modules.forget(ctx.key)
            raise
        self._rendered[ctx.key] = _Known(question, rendered)
        return rendered

    async def _planned(
        self,
        transform: Transform,
        source: Source,
        rendered: Rendered,
        ctx: Context,
        after: float | None,
    ) -> None:
        """Say what would be done; raises a verdict, since nothing is."""
        plan = await self._planner.planned(transform, source, rendered)
        transform.status.plan = plan.told(ctx.now)
        transform.status.phase = "Pending"
        raise Stalled(
            reasons.DRY_RUN,
            f"dry run: {plan.summary}; nothing is applied until spec.dryRun is removed",
            after=after,
        )

    async def rest(self, object_: Transform) -> None:
        """A Transform is left alone, and so is its graph."""
        await self._runs.suspend(transform_source(object_))

    async def finalize(self, object_: Transform, ctx: Context) -> None:  # noqa: ARG002 -- the graph tells
        """End its graph, or graphs if it was moved to another cluster lately.

        The graph tells what became of its objects.
        """
        source = transform_source(object_)
        for one in self._runs.sources(source):
            policy = object_.spec.deletion_policy
            await ending.end_graph(self._own, self._runs.graphs, one, policy, going=self._going)
        self._going = {one for one in self._going if not one.startswith(source.uid)}

    def forget(self, key: Key) -> None:
        """A Transform is gone, and so is what was remembered of it."""
        self._modules.forget(key)
        self._runs.forget(key)
        self._silence(key)
        self._rendered.pop(key, None)
        self._untold.pop(key, None)

    def reset(self) -> None:
        """Another replica leads."""
        self._runs.reset()
        for key in tuple(self._alarms):
            self._silence(key)
        self._rendered.clear()
        self._untold.clear()
        self._going.clear()


def _clock() -> float:
    return asyncio.get_running_loop().time()


def transform_source(transform: Transform) -> Source:
    """A Transform as what a graph is made for."""
    cluster = transform.spec.cluster_ref
    return source_of(transform, cluster.name if cluster else None)


def _forget_the_past(transform: Transform) -> None:
    """Say nothing of this spec that was found out about another one."""
    status = transform.status
    if status.observed_generation != transform.metadata.generation:
        status.violations, status.plan = (), None


def _was_rendered(transform: Transform) -> bool:
    """Whether this very spec was rendered and stored once."""
    return any(
        one.type == "Rendered"
        and one.status == "True"
        and one.observed_generation == transform.metadata.generation
        for one in transform.status.conditions
    )


def _soonest(*times: float | None) -> float | None:
    return min((one for one in times if one is not None), default=None)


def _require_no_dry_run(transform: Transform) -> None:
    """A return to a revision is not planned, and not made while only a plan is asked for."""
    if transform.spec.dry_run:
        transform.status.phase = "Pending"
        raise Stalled(
            reasons.DRY_RUN,
            f"dry run: the return to revision {transform.spec.rollback_to} waits until spec.dryRun "
            "is removed",
        )


def _phase(verdict: Waiting) -> Phase:
    if verdict.reason == reasons.FETCHING:
        return "Fetching"
    if verdict.reason == reasons.DRY_RUN:
        return "Pending"
    return "Executing" if verdict.reason in reasons.ON_THE_WAY else "Failed"


def _note_module(transform: Transform, module: Artifact, ctx: Context) -> None:
    known = transform.status.resolved_cue_ref
    if known is None or known.digest != module.digest:
        transform.status.resolved_cue_ref = ResolvedCueReference(
            digest=module.digest, fetched_at=ctx.now
        )


def _let_pass(rendered: Rendered) -> str:
    count = len(rendered.violations)
    if not count:
        return ""
    return f"{count} {'finding does' if count == 1 else 'findings do'} not block; see violations"


def _reference(graph: ResourceGraph) -> ObjectReference:
    return ObjectReference(
        api_version=GRAPHS.api_version,
        kind=GRAPHS.kind,
        name=graph.metadata.name,
        namespace=graph.metadata.namespace,
        uid=graph.metadata.uid,
    )
