"""Fills in the values that a node takes from others: reads them, evaluates, judges what comes out.

The objects that values come from are read in the tenant's name, once in a pass for each version,
and dropped with the pass; only the values stay. What is not there yet is waited for, what is wrong
is the node's problem: both until one of the objects changes. Only when nobody could be asked is
it tried again after a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from pequod.api import reasons
from pequod.base.logs import one_line
from pequod.evaluator.answers import CelAnswer
from pequod.evaluator.errors import EvaluationError
from pequod.graph.applying import RefusedError
from pequod.graph.child import Child
from pequod.graph.desired import UnusableObjectError
from pequod.graph.model import LAST_APPLIED
from pequod.graph.probes import Probes, Subject
from pequod.graph.problems import explained
from pequod.graph.record import Filled, Problem
from pequod.graph.values import Expression, Place, Template, UnfitValueError
from pequod.kube.errors import KubeError
from pequod.kube.objects import Object

KEPT = 4 * 1024
"""Bytes of values of one node that are kept between passes."""
MOST = 16 * 1024 * 1024
"""Bytes of the objects that one node takes values from, together."""
_LONGEST = 300
_ONLY = "; of a node with objectFrom only metadata and status can be read"
_HARMLESS = ("apiVersion", "kind", "metadata", "status")
"""What a sensitive part cannot have added to an object."""


class Taker(Subject, Protocol):
    """A node that takes values from others."""

    @property
    def digest(self) -> str:
        """Of what it asks for without them."""

    @property
    def template(self) -> Template | None:
        """Where they are to stand."""

    @property
    def judge(self) -> Callable[[Mapping[str, Any]], str] | None:
        """The digest of what it asks for with values; raises UnusableObjectError."""


@dataclass(frozen=True, slots=True)
class Source:
    """A node that values are taken from."""

    subject: Subject | None
    """None when it cannot be executed at the moment."""
    child: Child | None

    @property
    def sensitive(self) -> bool:
        """Whether its values are nobody's business."""
        return self.subject is not None and self.subject.sensitive

    @property
    def version(self) -> str | None:
        """Of its object, as far as it is known."""
        if self.subject is None:
            return None
        return self.child.metadata.resource_version if self.child is not None else ""


async def filled(taker: Taker, sources: Mapping[str, Source], probes: Probes) -> Filled:
    """What a node asks for with the values of others; raises RefusedError when nobody answers."""
    assert taker.template is not None, "asked for by those that have one"
    objects: dict[str, Object] = {}
    read: dict[str, str | None] = {}
    made = Filled(taker.digest, {id_: source.version for id_, source in sources.items()}, read)
    size = 0
    for id_, source in sources.items():
        live = await _live(taker, source, probes)
        read[id_] = live["metadata"].get("resourceVersion", "") if live is not None else ""
        if live is None:
            return replace(made, lacks=_absent(taker.template, id_, source))
        objects[id_] = visible(live, sensitive=source.sensitive)
        size += len(msgspec.json.encode(objects[id_]))
        if size > MOST:
            text = f"what it takes values from is more than {MOST // 2**20} MiB: take less"
            return replace(made, problem=_problem(reasons.EVALUATION_LIMIT, taker, text))
    sensitive = frozenset(id_ for id_, one in sources.items() if one.sensitive)
    return await evaluated(taker, objects, sensitive, probes, made)


async def evaluated(
    taker: Taker,
    objects: Mapping[str, Object],
    sensitive: frozenset[str],
    probes: Probes,
    made: Filled,
) -> Filled:
    """What a node asks for with values of visible objects; some of them are `sensitive`."""
    assert taker.template is not None, "asked for by those that have one"
    answers = await _answers(taker, taker.template, objects, probes)
    if answers is None:
        text = (
            "values of other nodes cannot be filled in here, since there is no evaluator: start "
            "the operator with --evaluator"
        )
        return replace(made, problem=_problem(reasons.EVALUATION_FAILED, taker, text))
    return _judged(taker, answers, made, sensitive)


def _problem(reason: reasons.Reason, taker: Taker, text: str) -> Problem:
    return Problem(reason, f"{taker.ref}: {text}")


async def _answers(
    taker: Taker, template: Template, objects: Mapping[str, Object], probes: Probes
) -> dict[tuple[Expression, Place], CelAnswer] | None:
    """What each expression yields; None when nobody can evaluate them here."""
    expressions = template.expressions
    try:
        answers = await probes.evaluated([one.cel for one in expressions], {"nodes": objects})
    except EvaluationError as error:
        text = f"{taker.ref}: its values were not evaluated: {error}; it is tried again"
        raise RefusedError(Problem(error.reason, text, transient=error.transient)) from error
    return dict(zip(expressions.items(), answers, strict=True)) if answers is not None else None


async def _live(taker: Taker, source: Source, probes: Probes) -> Object | None:
    """The object that values are taken from; None when it is not there."""
    if source.subject is None or source.child is None:
        return None
    try:
        return await probes.live(source.subject, source.child)
    except KubeError as error:
        problem = explained(error, source.subject.ref, sensitive=source.subject.sensitive)
        text = f"{taker.ref}: its values cannot be read: {problem.message}"
        raise RefusedError(Problem(problem.reason, text, transient=problem.transient)) from error


def visible(live: Object, *, sensitive: bool) -> Object:
    """What expressions get to see: nothing that came from a Secret, and no bookkeeping."""
    metadata = {name: one for name, one in live["metadata"].items() if name != "managedFields"}
    if not sensitive:
        return live | {"metadata": metadata}
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED in annotations:
        kept = {name: one for name, one in annotations.items() if name != LAST_APPLIED}
        metadata["annotations"] = kept
    return {name: live[name] for name in _HARMLESS if name in live} | {"metadata": metadata}


def _absent(template: Template, id_: str, source: Source) -> str:
    expression, place = next(pair for pair in template.expressions.items() if id_ in pair[0].nodes)
    if source.subject is None:
        return _waiting(expression, place, f"node {id_} cannot be executed at the moment")
    return _waiting(expression, place, f"{source.subject.ref} is not there")


def _waiting(expression: Expression, place: Place, why: str) -> str:
    return f"waits for {expression} (at {place}): {why}"


def _judged(
    taker: Taker,
    found: Mapping[tuple[Expression, Place], CelAnswer],
    made: Filled,
    sensitive: frozenset[str],
) -> Filled:
    """The values, or the first reason why they cannot be filled in: what is wrong comes first."""
    lacks = ""
    for (expression, place), answer in found.items():
        failure = answer.failure
        hidden = taker.sensitive or not sensitive.isdisjoint(expression.nodes)
        if failure is not None and failure.kind != "missing":
            said = "values are not shown" if hidden else one_line(failure.message, _LONGEST)
            text = f"{expression} at {place} cannot be evaluated ({said}): mend it"
            return replace(made, problem=_problem(reasons.INVALID_EXPRESSION, taker, text))
        if not lacks and failure is not None:
            only = sensitive.intersection(expression.nodes)
            lacks = _waiting(expression, place, "no such field yet" + (_ONLY if only else ""))
        elif not lacks and answer.value is None:
            lacks = _waiting(expression, place, "it is null")
    if lacks:
        return replace(made, lacks=lacks)
    values = {expression.text: answer.value for (expression, _), answer in found.items()}
    return _with_values(taker, values, made)


def _with_values(taker: Taker, values: Mapping[str, Any], made: Filled) -> Filled:
    assert taker.judge is not None, "a node with a template has one"
    try:
        bulky = len(msgspec.json.encode(values)) > KEPT
        return replace(made, digest=taker.judge(values), values=values, bulky=bulky)
    except UnfitValueError as error:
        problem = _problem(reasons.INVALID_EXPRESSION, taker, str(error))
    except UnusableObjectError as error:
        text = f"{taker.ref}, with values of other nodes filled in: {error}"
        problem = Problem(error.reason, text)
    return replace(made, problem=problem)
