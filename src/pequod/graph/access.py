"""Whether an identity may do everything that a graph needs: all denials at once, and beforehand.

One question for each identity and namespace yields the rules that RBAC knows of; only what they do
not allow is asked for one by one, since other authorizers may. Answers are believed for a minute.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import msgspec

from pequod.base.flights import Flights
from pequod.base.tasks import end
from pequod.kube.client import Client
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

LIFETIME = 60.0
"""Seconds for which an answer is believed."""
_AT_ONCE = 8
_RULES = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False
)
_ACCESS = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """One thing that has to be allowed."""

    verb: str
    group: str
    plural: str
    namespace: str
    name: str

    @property
    def resource(self) -> str:
        """As kubectl and RBAC name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def allows(self, need: Need) -> bool:
        return (
            _among(need.verb, self.verbs)
            and _among(need.group, self.api_groups)
            and _among(need.plural, self.resources)
            and (not self.resource_names or need.name in self.resource_names)
        )


class _RulesStatus(msgspec.Struct, frozen=True, rename="camel"):
    resource_rules: tuple[_Rule, ...] = ()


def _among(word: str, words: tuple[str, ...]) -> bool:
    return word in words or "*" in words


@dataclass(slots=True)
class _Known:
    until: float
    rules: dict[str, tuple[_Rule, ...]] = field(default_factory=dict)
    asked: dict[Need, bool] = field(default_factory=dict)


class Access:
    """What identities may do at one API server."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._asking: Flights[tuple[_Rule, ...]] = Flights()

    def forget(self, who: str) -> None:
        """The API server has just said otherwise."""
        self._known.pop(who, None)

    async def denied(self, client: Client, who: str, needs: Iterable[Need]) -> list[Need]:
        """Those of the needs that are not allowed; raises KubeError when that cannot be known."""
        known = self._fresh(who)
        wanted = sorted(set(needs))
        for namespace in sorted({need.namespace for need in wanted} - known.rules.keys()):
            asking = partial(_rules, client, namespace)
            known.rules[namespace] = await self._asking.share(f"{who}|{namespace}", asking)
        doubtful = [
            need
            for need in wanted
            if not any(rule.allows(need) for rule in known.rules[need.namespace])
            and not known.asked.get(need)
        ]
        await self._ask(client, known, doubtful)
        return [need for need in doubtful if not known.asked[need]]

    def _fresh(self, who: str) -> _Known:
        now = asyncio.get_running_loop().time()
        known = self._known.get(who)
        if known is None or known.until < now:
            self._known = {name: one for name, one in self._known.items() if one.until >= now}
            known = self._known[who] = _Known(now + LIFETIME)
        return known

    async def _ask(self, client: Client, known: _Known, needs: list[Need]) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def ask(need: Need) -> None:
            async with slots:
                known.asked[need] = await _allowed(client, need)

        tasks = [asyncio.create_task(ask(need)) for need in needs]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end(*tasks)


async def _rules(client: Client, namespace: str) -> tuple[_Rule, ...]:
    # Rules for cluster-scoped objects hold in every namespace; the question needs one.
    spec = {"namespace": namespace or "default"}
    answer = await client.create(_RULES, _review(_RULES, spec))
    rules = msgspec.convert(answer.get("status") or {}, _RulesStatus, strict=False).resource_rules
    if namespace:
        return rules
    # A RoleBinding of that namespace says nothing about cluster-scoped objects.
    return ()


async def _allowed(client: Client, need: Need) -> bool:
    attributes = {
        "verb": need.verb,
        "group": need.group,
        "resource": need.plural,
        "name": need.name,
    }
    if need.namespace:
        attributes["namespace"] = need.namespace
    answer = await client.create(_ACCESS, _review(_ACCESS, {"resourceAttributes": attributes}))
    return (answer.get("status") or {}).get("allowed") is True


def _review(kind: Kind, spec: Object) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}


def described(needs: Iterable[Need], *, most: int = 10) -> str:
    """Denials for a person: what is missing, by resource and namespace."""
    verbs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for need in needs:
        verbs[need.resource, need.namespace].add(need.verb)
    parts = [
        f"{', '.join(sorted(missing))} {resource}"
        + (f" in namespace {namespace}" if namespace else " (cluster-scoped)")
        for (resource, namespace), missing in sorted(verbs.items())
    ]
    more = len(parts) - most
    return "; ".join(parts[:most]) + (f"; and {more} more" if more > 0 else "")
