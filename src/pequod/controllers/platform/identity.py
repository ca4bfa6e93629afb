"""In whose name a graph is executed, and how far that reaches."""

import asyncio
from dataclasses import dataclass

import msgspec

from pequod.api import reasons
from pequod.api.meta import ObjectReference
from pequod.api.platform import ResourceGraph
from pequod.base.flights import Flights
from pequod.controllers.platform.targets import Target
from pequod.graph.reach import IdentityMode
from pequod.kube.auth import Impersonation
from pequod.kube.client import Client
from pequod.kube.discovery import Discovery
from pequod.kube.errors import NotFoundError, UnknownKindError
from pequod.kube.kinds import SERVICE_ACCOUNTS
from pequod.kube.objects import Described, Key, Named
from pequod.runtime.verdicts import Stalled, Waiting

BELIEVED = {"account": 10.0, "source": 60.0}
"""Seconds for which it is believed that something is there."""
AGAIN = 30.0


FRONT_ENDS = frozenset(
    {
        "platform.pequod.io",
        "rollup.oplabs.io",
        "catalyst.catalyst.dev",
        "sync.ignition.io",
        "ajj.io",
    }
)
"""Groups of the kinds that graphs are made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Whoever acts for a graph."""

    client: Client
    """On the cluster that the graph is executed on."""
    home: Client
    """On the cluster that the graph is stored on."""
    name: str
    """For people."""
    who: str
    """For answers that are remembered: one for each identity on each cluster."""
    impersonated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRules:
    """What the operator's flags say about identities."""

    mode: IdentityMode = "confined"
    default_account: str = "default"


class Identities:
    """Finds out who acts."""

    def __init__(self, own: Client, rules: IdentityRules, *, namespace: str) -> None:
        self.rules = rules
        self.own = own
        self.namespace = namespace
        """The operator's own."""
        self._discovery = Discovery(own)
        self._seen: dict[tuple[str, ...], float] = {}
        """What was seen, and until when that is believed."""
        self._asking: Flights[bool] = Flights()

    def actor(self, graph: ResourceGraph, target: Target) -> Actor:
        """Who acts for a graph; whether they may is checked before they do anything."""
        account = graph.spec.service_account_name
        if account is None and self.rules.mode != "impersonate":
            return self._operator(target)
        name = account or self.rules.default_account
        return self._account(target, Key(graph.metadata.namespace or "", name))

    async def home(self, namespace: str, account: str | None) -> Client:
        """Who reads what a source in a namespace refers to; raises a verdict when nobody may."""
        if account is None and self.rules.mode != "impersonate":
            return self.own
        key = Key(namespace, account or self.rules.default_account)
        await self._require_account_on(self.own, "", key)
        return self.own.acting_as(Impersonation.of_account(key.namespace, key.name))

    async def require(self, graph: ResourceGraph, target: Target) -> None:
        """Be sure that somebody answers for a graph; raises a verdict when nobody does.

        A graph that is being deleted needs no source any more: its inventory is the operator's.
        """
        account = graph.spec.service_account_name
        if account is None:
            if graph.metadata.deletion_timestamp is None:
                await self._require_source(graph)
            if self.rules.mode != "impersonate":
                return
            account = self.rules.default_account
        await self._require_account(target, Key(graph.metadata.namespace or "", account))

    def _operator(self, target: Target) -> Actor:
        return Actor(
            client=target.client,
            home=self.own,
            name="the operator's account",
            who=f"{target.name}|",
            impersonated=False,
        )

    def _account(self, target: Target, key: Key) -> Actor:
        account = Impersonation.of_account(key.namespace, key.name)
        return Actor(
            client=target.client.acting_as(account),
            home=self.own.acting_as(account),
            name=f"ServiceAccount {key}",
            who=f"{target.name}|{key}",
            impersonated=True,
        )

    async def _require_account(self, target: Target, key: Key) -> None:
        await self._require_account_on(target.client, target.name, key)

    async def _require_account_on(self, client: Client, cluster: str, key: Key) -> None:
        """An account that does not exist can be impersonated all the same: so it is looked for."""
        word = ("account", cluster, str(key))
        if self._is_believed(word):
            return
        if not await self._asking.share(str(word), lambda: _exists(client, key)):
            raise Waiting(
                reasons.ACCOUNT_NOT_FOUND,
                f"ServiceAccount {key} does not exist; create it, or name another one in "
                "spec.serviceAccountName",
                after=AGAIN,
            )
        self._believe(word)

    async def _require_source(self, graph: ResourceGraph) -> None:
        """A graph that nobody answers for is not executed with rights that are not its author's."""
        source = graph.spec.source_ref
        if source is not None:
            word = ("source", *(str(part) for part in msgspec.to_builtins(source).values()))
            if self._is_believed(word):
                return
            if self._may_be_source(graph, source) and await self._lives(source):
                self._believe(word)
                return
        raise Stalled(
            reasons.NO_IDENTITY,
            "the graph has no live source: name the account that it is executed for in "
            "spec.serviceAccountName",
        )

    def _may_be_source(self, graph: ResourceGraph, source: ObjectReference) -> bool:
        """Whether a front end of ours could have made the graph for such an object."""
        group = source.api_version.rpartition("/")[0]
        if source.namespace is None:
            return group in FRONT_ENDS and graph.metadata.namespace == self.namespace
        return group in FRONT_ENDS and source.namespace == graph.metadata.namespace

    async def source_annotations(self, graph: ResourceGraph) -> dict[str, str]:
        """What people have written on the source of a graph."""
        source = graph.spec.source_ref
        if source is None:
            return {}
        try:
            kind = await self._discovery.find(source.api_version, source.kind)
            found = await self.own.get(
                kind, source.name, namespace=source.namespace, type=Described
            )
        except (NotFoundError, UnknownKindError):
            return {}
        return found.metadata.annotations

    async def _lives(self, source: ObjectReference) -> bool:
        try:
            kind = await self._discovery.find(source.api_version, source.kind)
            found = await self.own.get(kind, source.name, namespace=source.namespace, type=Named)
        except (NotFoundError, UnknownKindError):
            return False
        return bool(source.uid) and found.metadata.uid == source.uid

    def _is_believed(self, word: tuple[str, ...]) -> bool:
        return self._seen.get(word, float("-inf")) > _clock()

    def _believe(self, word: tuple[str, ...]) -> None:
        now = _clock()
        self._seen = {key: until for key, until in self._seen.items() if until > now}
        self._seen[word] = now + BELIEVED[word[0]]


async def _exists(client: Client, key: Key) -> bool:
    try:
        await client.get(SERVICE_ACCOUNTS, key.name, namespace=key.namespace, type=Named)
    except NotFoundError:
        return False
    return True


def _clock() -> float:
    return asyncio.get_running_loop().time()
