"""How a Cluster is reached: a client, from the operator's own access or a kubeconfig Secret."""

import asyncio

from pequod.api import reasons
from pequod.api.gitops import Cluster
from pequod.api.meta import SecretKeyReference
from pequod.kube.addresses import AddressRefusedError, AddressRule
from pequod.kube.auth import Access
from pequod.kube.client import Client
from pequod.kube.clusters import Clusters
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Key, Metadata, Secret
from pequod.kube.remote import InvalidKubeconfigError, parse
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Stalled, Waiting


class Connections:
    """Makes clients for Clusters, and keeps them for as long as their Secrets stay the same."""

    def __init__(self, own: Client, clusters: Clusters, addresses: AddressRule) -> None:
        self._own = own
        self._clusters = clusters
        self._addresses = addresses
        self._parsing = asyncio.Lock()

    async def client(self, cluster: Cluster, ctx: Context) -> Client:
        """A client for a cluster; raises a verdict that says why there is none."""
        reference = cluster.spec.kubeconfig_secret_ref
        if reference is None:
            self._clusters.drop(ctx.key)
            return self._own
        secret = Key(ctx.key.namespace, reference.name)
        metadata = await ctx.observed(SECRETS, secret)
        if metadata is None:
            self._clusters.drop(ctx.key)
            raise _missing(secret)
        version = _version(metadata.metadata, reference)
        return self._clusters.known(ctx.key, version) or await self._connected(
            ctx.key, secret, reference
        )

    def confirm(self, key: Key) -> None:
        """The cluster is the one that was registered: graphs may use the connection."""
        self._clusters.confirm(key)

    def doubt(self, key: Key) -> None:
        """Another cluster answers: nothing may be written to it."""
        self._clusters.doubt(key)

    def forget(self, key: Key) -> None:
        """Close the connection of a Cluster that is gone."""
        self._clusters.drop(key)

    def forget_all(self) -> None:
        """Close every connection: another replica leads."""
        self._clusters.drop_all()

    async def _connected(self, key: Key, secret: Key, reference: SecretKeyReference) -> Client:
        """A new connection with what the Secret says now."""
        try:
            found = await self._own.get(
                SECRETS, secret.name, namespace=secret.namespace, type=Secret
            )
        except NotFoundError as error:
            raise _missing(secret) from error
        try:
            # One at a time: a thread shares its interpreter with the loop.
            async with self._parsing:
                access = await asyncio.to_thread(self._access, found, secret, reference)
        except Stalled:
            self._clusters.drop(key)
            raise
        return self._clusters.connect(key, _version(found.metadata, reference), access)

    def _access(self, found: Secret, secret: Key, reference: SecretKeyReference) -> Access:
        text = found.content.get(reference.key)
        if text is None:
            raise Stalled(
                reasons.KEY_NOT_FOUND,
                f"Secret {secret} has no key {reference.key}; add it, or name another one in "
                "spec.kubeconfigSecretRef.key",
            )
        try:
            return parse(text, address_allowed=self._addresses)
        except (InvalidKubeconfigError, AddressRefusedError) as error:
            message = f"Secret {secret}, key {reference.key}: {error}"
            raise Stalled(error.reason, message) from error


def _missing(secret: Key) -> Waiting:
    return Waiting(
        reasons.SECRET_NOT_FOUND,
        f"Secret {secret} does not exist; create it with the kubeconfig of the cluster, or name "
        "another one in spec.kubeconfigSecretRef.name",
    )


def _version(metadata: Metadata, reference: SecretKeyReference) -> str:
    return f"{metadata.uid}/{metadata.resource_version}/{reference.key}"
