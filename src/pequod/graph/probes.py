"""Questions that need more than what is kept of an object: it is read, in the tenant's name."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from pequod.api.graph import Node
from pequod.base.flights import Flights
from pequod.base.logs import one_line
from pequod.evaluator.answers import CelAnswer
from pequod.graph import podfailures
from pequod.graph.child import Child
from pequod.graph.model import Ref
from pequod.graph.readiness import READY, Answer, Readiness, to_be_asked
from pequod.kube.client import Client, Selection, decoded
from pequod.kube.errors import KubeError, NotFoundError
from pequod.kube.kinds import PODS, Kind
from pequod.kube.objects import Object

_MOST_PODS = 20
_LONGEST = 300
_NO_EXPRESSION = "ERROR: <input>:"
"""How CEL begins what it says of an expression that it cannot even read."""
_MOST_KEPT = 32
"""Objects that are kept for those who ask for them later in the same pass."""
_WITH_PODS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
    }
)


class Cel(Protocol):
    """Evaluates expressions."""

    async def cel(
        self,
        expressions: Sequence[str],
        variables: Mapping[str, Any],
        *,
        cost_limit: int = ...,
        owner: str = ...,
    ) -> tuple[CelAnswer, ...]:
        """The value of each expression."""


class Subject(Protocol):
    """The node that is asked about."""

    @property
    def node(self) -> Node:
        """With its predicates."""

    @property
    def kind(self) -> Kind:
        """Of its object."""

    @property
    def ref(self) -> Ref:
        """Its object."""

    @property
    def sensitive(self) -> bool:
        """Whether its values are nobody's business."""


class Probes:
    """Asks in one identity's name."""

    def __init__(self, client: Client, cel: Cel | None, *, owner: str) -> None:
        self._client = client
        self._cel = cel
        self._owner = owner
        self._read: dict[tuple[Ref, str], Object | None] = {}
        self._reading: Flights[Object | None] = Flights()

    async def answers(self, subject: Subject, child: Child) -> dict[str, Answer]:
        """What the expressions of a node say of its live object as it is now.

        Raises EvaluationError when they could not be asked.
        """
        expressions = to_be_asked(subject.node.ready_when, child, {})
        version = child.metadata.resource_version
        if self._cel is None:
            broken = Readiness(ready=False, detail="CEL cannot be evaluated here: no evaluator")
            return {text: Answer(version, broken) for text in expressions}
        ref = subject.ref
        try:
            live = await self._client.get(subject.kind, ref.name, namespace=ref.namespace or None)
        except NotFoundError:
            gone = Readiness(ready=False, detail="it is gone")
            return {text: Answer(version, gone) for text in expressions}
        found = await self._cel.cel(expressions, {"self": live}, owner=self._owner)
        return {
            text: Answer(version, _readiness(text, one, hidden=subject.sensitive))
            for text, one in zip(expressions, found, strict=True)
        }

    async def live(self, subject: Subject, child: Child) -> Object | None:
        """The live object of a node, read once for each version of it; None when it is gone.

        Another object of the same name is not the node's.
        """
        version = (subject.ref, child.metadata.resource_version)
        if version in self._read:
            found = self._read[version]
        else:
            found = await self._reading.share(version, partial(self._found, subject))
            self._read[version] = found
            if len(self._read) > _MOST_KEPT:
                del self._read[next(iter(self._read))]
        if found is None or found["metadata"].get("uid") != child.metadata.uid:
            return None
        return found

    async def _found(self, subject: Subject) -> Object | None:
        ref = subject.ref
        try:
            return await self._client.get(subject.kind, ref.name, namespace=ref.namespace or None)
        except NotFoundError:
            return None

    async def evaluated(
        self, expressions: Sequence[str], variables: Mapping[str, Any]
    ) -> tuple[CelAnswer, ...] | None:
        """The values of expressions; None when nobody can evaluate them here.

        Raises EvaluationError when they could not be asked for.
        """
        if self._cel is None:
            return None
        return await self._cel.cel(expressions, variables, owner=self._owner)

    async def explanation(self, subject: Subject) -> str:
        """What the pods of a workload say about why it is not ready; empty when they say nothing.

        Whoever may not list pods gets no explanation: that is no failure of the workload's.
        """
        ref = subject.ref
        if (ref.group, ref.kind) not in _WITH_PODS:
            return ""
        try:
            live = await self._client.get(subject.kind, ref.name, namespace=ref.namespace)
            selector = podfailures.selector(live)
            if not selector:
                return ""
            page = await self._client.page(
                PODS, Selection(namespace=ref.namespace, labels=selector), limit=_MOST_PODS
            )
        except KubeError:
            return ""
        return podfailures.described(decoded(raw, Object) for raw in page.items or ())


def _readiness(expression: str, answer: CelAnswer, *, hidden: bool) -> Readiness:
    if answer.failure is not None:
        message = one_line(answer.failure.message, _LONGEST)
        if message.startswith(_NO_EXPRESSION):
            detail = f"{expression} is no CEL expression ({message}): mend it in readyWhen"
            return Readiness(ready=False, failed=True, detail=detail)
        # A field that is not there yet is the usual reason, and may come. What CEL says about it
        # may hold values.
        said = "it cannot be evaluated; values are not shown" if hidden else message
        return Readiness(ready=False, detail=f"{expression}: {said}")
    if answer.value is True:
        return READY
    if answer.value is False:
        return Readiness(ready=False, detail=f"{expression} is false")
    return Readiness(ready=False, failed=True, detail=f"{expression} yields neither true nor false")
