"""The Secrets of a chain: watched, read when they change, and checked as a whole."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pequod.api import reasons
from pequod.api.rollup import OPChain, OPChainSpec
from pequod.controllers.frontend.storing import Source
from pequod.controllers.rollup.configuration import (
    GENESIS,
    JWT,
    KEY,
    L1_CHAIN,
    PACKED_GENESIS,
    ROLLUP,
    Configuration,
    InvalidConfigurationError,
    Material,
    configuration,
)
from pequod.controllers.rollup.findings import File
from pequod.kube.client import Client
from pequod.kube.errors import AlreadyExistsError, NotFoundError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Key, Secret
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Stalled, Waiting

Versions = tuple[tuple[str, str], ...]
"""Secrets and their versions: the same ones hold the same."""


@dataclass(frozen=True, slots=True)
class _Known:
    generation: int
    versions: Versions
    outcome: Configuration | InvalidConfigurationError


class Loader:
    """Reads the configuration of every chain, each version once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[Key, _Known] = {}

    async def load(self, chain: OPChain, source: Source, ctx: Context) -> Configuration:
        """The configuration of a chain; raises a verdict that names everything that is wrong."""
        names = _names(chain)
        versions = await self._versions(chain, names, source, ctx)
        generation = chain.metadata.generation
        known = self._known.get(ctx.key)
        if known is None or (known.generation, known.versions) != (generation, versions):
            material = await self._read(chain, names)
            outcome = await asyncio.to_thread(_checked, chain.spec, material)
            known = self._known[ctx.key] = _Known(generation, versions, outcome)
        if isinstance(known.outcome, InvalidConfigurationError):
            raise Stalled(reasons.INVALID_CONFIGURATION, str(known.outcome))
        return known.outcome

    def forget(self, key: Key) -> None:
        """A chain is gone."""
        self._known.pop(key, None)

    async def _versions(
        self, chain: OPChain, names: Mapping[str, str], source: Source, ctx: Context
    ) -> Versions:
        """The versions of all Secrets that are needed; raises a verdict while some are missing."""
        found: dict[str, str] = {}
        missing: list[str] = []
        for role, name in names.items():
            metadata = await ctx.observed(SECRETS, Key(ctx.key.namespace, name))
            if metadata is not None:
                found[name] = f"{metadata.metadata.uid} {metadata.metadata.resource_version}"
            elif role == JWT and chain.spec.l2.jwt_secret is None:
                await self._make_jwt(name, source)
            else:
                missing.append(f"Secret {name} ({_ROLES[role]})")
        if missing:
            raise Waiting(
                reasons.SECRET_NOT_FOUND,
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there: create "
                "what is missing, for example by `pequod opchain secrets`",
            )
        return tuple(sorted(found.items()))

    async def _make_jwt(self, name: str, source: Source) -> None:
        """Make the secret of the engine API, once: one that is there is used as it is."""
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": source.metadata(name),
            "type": "Opaque",
            "stringData": {JWT: secrets.token_hex(32)},
        }
        try:
            await self._client.create(SECRETS, secret)
        except AlreadyExistsError:
            return

    async def _read(self, chain: OPChain, names: Mapping[str, str]) -> Material:
        namespace = chain.metadata.namespace or ""
        found = {name: await self._data(namespace, name) for name in sorted({*names.values()})}
        packed = PACKED_GENESIS in found[names[GENESIS]]
        keys = {role: role for role in (ROLLUP, JWT, L1_CHAIN)} | {
            GENESIS: PACKED_GENESIS if packed else GENESIS,
            _BATCHER: KEY,
            _PROPOSER: KEY,
        }
        reference = chain.spec.l1.rpc_url_secret_ref
        if reference is not None:
            keys[_URL] = reference.key
        files: dict[str, File] = {}
        missing: list[str] = []
        for role, name in names.items():
            key = keys[role]
            if key in found[name]:
                files[role] = File(name, key, found[name][key])
            else:
                missing.append(f"Secret {name} has no key {key}{_present(found[name])}")
        if missing:
            raise Waiting(reasons.KEY_NOT_FOUND, "; ".join(missing))
        return Material(
            genesis=files[GENESIS],
            rollup=files[ROLLUP],
            jwt=files[JWT],
            l1_chain=files.get(L1_CHAIN),
            l1_url=files.get(_URL),
            batcher_key=files.get(_BATCHER),
            proposer_key=files.get(_PROPOSER),
        )

    async def _data(self, namespace: str, name: str) -> Mapping[str, bytes]:
        try:
            found = await self._client.get(SECRETS, name, namespace=namespace, type=Secret)
        except NotFoundError as error:
            raise Waiting(reasons.SECRET_NOT_FOUND, f"Secret {name} is gone", after=1.0) from error
        return found.content


_BATCHER, _PROPOSER, _URL = "batcher", "proposer", "l1-url"
_ROLES = {
    GENESIS: "spec.l2.genesisConfigSecret, with genesis.json or genesis.json.gz",
    ROLLUP: "spec.l2.rollupConfigSecret, with rollup.json",
    JWT: "spec.l2.jwtSecret, with jwt",
    L1_CHAIN: "spec.l1.chainConfigSecret, with chain.json",
    _URL: "spec.l1.rpcUrlSecretRef",
    _BATCHER: "spec.components.batcher.signerPrivateKeySecret, with key",
    _PROPOSER: "spec.components.proposer.signerPrivateKeySecret, with key",
}


def _names(chain: OPChain) -> dict[str, str]:
    """Which Secret each part of the configuration is in."""
    spec, components = chain.spec, chain.spec.components
    names = {
        GENESIS: spec.l2.genesis_config_secret,
        ROLLUP: spec.l2.rollup_config_secret,
        JWT: spec.l2.jwt_secret or f"{chain.metadata.name}-jwt",
    }
    if spec.l1.chain_config_secret is not None:
        names[L1_CHAIN] = spec.l1.chain_config_secret
    if spec.l1.rpc_url_secret_ref is not None:
        names[_URL] = spec.l1.rpc_url_secret_ref.name
    if components.batcher.enabled and components.batcher.signer_private_key_secret:
        names[_BATCHER] = components.batcher.signer_private_key_secret
    if components.proposer.enabled and components.proposer.signer_private_key_secret:
        names[_PROPOSER] = components.proposer.signer_private_key_secret
    return names


def _checked(spec: OPChainSpec, material: Material) -> Configuration | InvalidConfigurationError:
    try:
        return configuration(spec, material)
    except InvalidConfigurationError as error:
        return error


def _present(keys: Iterable[str]) -> str:
    return f"; it has {', '.join(sorted(keys))}" if keys else "; it is empty"
