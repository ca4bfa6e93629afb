"""The configuration of a chain: read from Secrets, and checked as a whole. Pure."""

import gzip
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from pequod.api.rollup import ContractAddress, OPChainSpec
from pequod.controllers.rollup import crosschecks
from pequod.controllers.rollup.accounts import (
    NotAKeyError,
    NotAnAddressError,
    Signer,
    checksummed,
    signer,
)
from pequod.controllers.rollup.findings import Document, File, Findings, address, document
from pequod.controllers.rollup.forks import fork_times
from pequod.controllers.rollup.identity import identity, word_for

GENESIS = "genesis.json"
PACKED_GENESIS = "genesis.json.gz"
ROLLUP = "rollup.json"
JWT = "jwt"
L1_CHAIN = "chain.json"
KEY = "key"
LARGEST_PLAIN = 128 * 2**10
"""A larger genesis is kept packed."""
LARGEST_GENESIS = 32 * 2**20
"""How large a genesis may be when it is unpacked."""
KNOWN_L1 = frozenset({1, 11_155_111, 17_000, 560_048})
"""Mainnet, Sepolia, Holesky and Hoodi, which op-node knows."""
_SECRET = "everybody could read it there; use signerPrivateKeySecret"  # noqa: S105 -- prose
_OURS = {
    "private-key": _SECRET,
    "mnemonic": _SECRET,
    "network": "the chain is that of genesis.json and rollup.json",
    "rollup.config": "the chain is that of l2.rollupConfigSecret",
    "datadir": "the data belongs on the volume",
    "state.scheme": "the data on the volume has another one",
    "authrpc.jwtsecret": "the token is that of l2.jwtSecret",
    "l2.jwt-secret": "the token is that of l2.jwtSecret",
}
"""Arguments that would undo what was checked, or show what is secret."""
_JWT = re.compile(rb"(0x)?[0-9a-fA-F]{64}")
_URL = re.compile(r"https?://[^\s/?#]+([/?#]\S*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the Secrets hold, before anybody has looked at it."""

    genesis: File
    rollup: File
    jwt: File
    l1_chain: File | None = None
    l1_url: File | None = None
    batcher_key: File | None = None
    proposer_key: File | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A configuration that nothing is known to be wrong with."""

    genesis: bytes = field(repr=False)
    """As JSON, packed when it is large: it would fill the graph, and the memory."""
    is_packed: bool = False
    genesis_digest: str
    """Of what the genesis says, however it is written."""
    rollup: bytes = field(repr=False)
    l1_chain: bytes | None = field(repr=False, default=None)
    jwt: str = field(repr=False)
    l1_url: str = field(repr=False)
    batcher: Signer | None = None
    proposer: Signer | None = None
    block_time: int
    genesis_hash: str
    """Of the first block of L2, as the rollup configuration has it."""
    identity: str
    """What cannot change under a chain that has data: where it begins, and how it is derived."""
    forks: Mapping[str, int]
    """When each fork comes."""


class InvalidConfigurationError(Exception):
    """Everything that is wrong with a configuration."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def configuration(spec: OPChainSpec, material: Material) -> Configuration:
    """The configuration of a chain; raises InvalidConfigurationError with all that is wrong."""
    findings = Findings()
    _check_addresses(spec, findings)
    _check_arguments(spec, findings)
    unpacked = _unpacked(material.genesis, findings)
    genesis = document(unpacked, findings) if unpacked else None
    rollup = document(material.rollup, findings)
    if genesis is not None:
        crosschecks.check_genesis(spec, genesis)
    if rollup is not None:
        crosschecks.check_rollup(spec, rollup)
    crosschecks.check_together(genesis, rollup)
    if material.l1_chain is not None:
        _check_l1_chain(spec, material.l1_chain, findings)
    elif spec.l1.chain_id not in KNOWN_L1 and spec.components.node.enabled:
        findings.add(
            "spec.l1.chainConfigSecret",
            f"is missing: op-node does not know the L1 with chain id {spec.l1.chain_id}; name a "
            "Secret that holds, in chain.json, what debug_chainConfig answers there",
        )
    jwt = _jwt(material.jwt, findings)
    url = _url(spec, material.l1_url, findings)
    batcher = _signer(material.batcher_key, findings)
    proposer = _signer(material.proposer_key, findings)
    _check_signers(spec, material, rollup, batcher, proposer, findings)
    if findings.problems or genesis is None or rollup is None:
        raise InvalidConfigurationError(findings.problems)
    large = len(genesis.file.content) > LARGEST_PLAIN
    return Configuration(
        genesis=packed(genesis.file.content) if large else genesis.file.content,
        is_packed=large,
        genesis_digest=word_for(genesis.root),
        rollup=material.rollup.content,
        l1_chain=material.l1_chain.content if material.l1_chain else None,
        jwt=jwt,
        l1_url=url,
        batcher=batcher,
        proposer=proposer,
        block_time=rollup.number(".block_time", least=1) or 1,
        genesis_hash=rollup.hash(".genesis.l2.hash") or "",
        identity=identity(genesis, rollup),
        forks=fork_times(rollup),
    )


def _unpacked(file: File, findings: Findings) -> File | None:
    """The genesis as JSON, whichever way it is kept."""
    if file.key != PACKED_GENESIS:
        return file
    try:
        # A bomb is recognised before it fills the memory.
        inflating = zlib.decompressobj(wbits=31)
        content = inflating.decompress(file.content, LARGEST_GENESIS)
    except zlib.error:
        findings.add(file, "cannot be unpacked: it must be made by gzip")
        return None
    if inflating.unconsumed_tail or not inflating.eof:
        whole = "more than 32 MiB when unpacked" if inflating.unconsumed_tail else "incomplete"
        findings.add(file, f"is {whole}")
        return None
    return File(file.secret, file.key, content)


def packed(genesis: bytes) -> bytes:
    """A genesis so that it fits into a Secret; the same one always gives the same bytes."""
    return gzip.compress(genesis, compresslevel=9, mtime=0)


def _check_addresses(spec: OPChainSpec, findings: Findings) -> None:
    for name, value in _addresses(spec).items():
        place = f"spec.l1.contractAddresses.{name}"
        try:
            if address(value) != value:
                findings.add(place, f"has no checksum: write {checksummed(value)}")
        except ValueError as error:
            findings.add(place, str(error))


def _addresses(spec: OPChainSpec) -> Mapping[str, ContractAddress]:
    found: dict[str, ContractAddress] = msgspec.to_builtins(spec.l1.contract_addresses)
    return found


def _check_arguments(spec: OPChainSpec, findings: Findings) -> None:
    """What is ours to say, or secret, is not for arguments."""
    for component in ("geth", "node", "batcher", "proposer"):
        arguments: tuple[str, ...] = getattr(spec.components, component).extra_args
        for argument in arguments:
            name = argument.partition("=")[0].lstrip("-")
            if name in _OURS:
                findings.add(
                    f"spec.components.{component}.extraArgs",
                    f"--{name} is not allowed: {_OURS[name]}",
                )


def _check_l1_chain(spec: OPChainSpec, file: File, findings: Findings) -> None:
    chain = document(file, findings)
    if chain is None:
        return
    above = ".config" if isinstance(chain.find(".config"), Mapping) else ""  # A genesis of L1.
    number = chain.number(f"{above}.chainId", least=1)
    if number is not None and number != spec.l1.chain_id:
        chain.wrong(f"{above}.chainId", f"is {number}, but spec.l1.chainId is {spec.l1.chain_id}")
    chain.mapping(f"{above}.blobSchedule")


def _jwt(file: File, findings: Findings) -> str:
    text = file.content.strip()
    if not _JWT.fullmatch(text):
        findings.add(file, "must be 32 bytes as 64 hexadecimal digits, with or without 0x")
        return ""
    return text.decode().removeprefix("0x").lower()


def _url(spec: OPChainSpec, file: File | None, findings: Findings) -> str:
    if file is None:
        return spec.l1.rpc_url or ""
    text = file.content.strip().decode("ascii", "replace")
    if not _URL.fullmatch(text) or not text.isprintable() or not text.isascii():
        findings.add(file, "must be an http or https URL")
    return text


def _signer(file: File | None, findings: Findings) -> Signer | None:
    if file is None:
        return None
    try:
        return signer(file.content)
    except NotAKeyError as error:
        findings.add(file, str(error))
        return None


def _check_signers(
    spec: OPChainSpec,
    material: Material,
    rollup: Document | None,
    batcher: Signer | None,
    proposer: Signer | None,
    findings: Findings,
) -> None:
    known = spec.l1.contract_addresses
    if batcher is not None:
        place, hint = "spec.l1.contractAddresses.batcher", ""
        wanted: object = known.batcher
        if wanted is None and rollup is not None:
            path = ".genesis.system_config.batcherAddr"
            place = f"{rollup.file}, {path}"
            wanted = None if rollup.is_wrong(path) else rollup.find(path)
            hint = "; set spec.l1.contractAddresses.batcher if SystemConfig names another by now"
        _check_account(material.batcher_key, batcher, wanted, place, findings, hint)
    if proposer is not None and known.proposer is not None:
        place = "spec.l1.contractAddresses.proposer"
        _check_account(material.proposer_key, proposer, known.proposer, place, findings)
    if batcher is not None and proposer is not None and batcher.address == proposer.address:
        findings.add(
            material.proposer_key,
            f"is the batcher's key as well ({batcher.address}): two programs that send from one "
            "account get into each other's way; give the proposer an account of its own",
        )


def _check_account(
    file: File | None,
    found: Signer,
    wanted: object,
    place: str,
    findings: Findings,
    hint: str = "",
) -> None:
    try:
        right = checksummed(wanted)
    except NotAnAddressError:
        return  # A finding of its own.
    if found.address != right:
        findings.add(file, f"is the key of {found.address}, but {place} is {right}{hint}")
