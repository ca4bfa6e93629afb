"""What nobody may read: made once, kept in Secrets, and nowhere else."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator

import structlog.testing

import chains
from doubles.chain import ChainDouble
from pequod.controllers.rollup.configuration import packed
from rollups import Chains, Object, StartFamily
from waiting import until

WITHOUT_JWT = {"chainId": chains.L2_CHAIN_ID, "jwtSecret": None}
PLAIN = (
    *("pods", "services", "configmaps", "persistentvolumeclaims", "events", "endpoints"),
    *("apps/v1/statefulsets", "apps/v1/deployments", "apps/v1/replicasets"),
    *("apps/v1/controllerrevisions", "events.k8s.io/v1/events"),
    *("platform.pequod.io/v1alpha1/resourcegraphs", "rollup.oplabs.io/v1alpha1/opchains"),
)
"""Everything that there can be in the namespace of a chain, apart from Secrets."""
_ACCOUNTS = 8000


def disguises(secret: str) -> Iterator[str]:
    """The forms in which a secret may turn up."""
    yield from (secret, secret.upper(), b64encode(secret.encode()).decode().rstrip("=")[:-1])
    yield b64encode(f"0x{secret}".encode()).decode().rstrip("=")[:-1]


def places_of(secrets: list[str], opchains: Chains, logs: object) -> list[tuple[str, str]]:
    """Where secrets can be read by anybody who may not read Secrets."""
    found = {resource: json.dumps(opchains.all(resource)) for resource in PLAIN}
    found["the operator's log"] = str(logs)
    return [
        (secret, place)
        for secret in secrets
        for place, text in found.items()
        if any(one in text for one in disguises(secret))
    ]


async def test_the_jwt_is_made_once_and_goes_with_the_chain(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets(but={"jwt"})
    opchains.make_chain(double, l2=WITHOUT_JWT)
    async with family(double):
        await until(opchains.is_running)
    made, before = opchains.live("secrets", "chain-jwt"), opchains.identities()
    assert len(bytes.fromhex(b64decode(made["data"]["jwt"]).decode())) == 32
    async with family(double):
        height = opchains.height()
        await until(lambda: opchains.is_running() and opchains.height() > height)
        assert opchains.live("secrets", "chain-jwt") == made
        assert opchains.identities() == before
        opchains.delete("chain")
        await until(lambda: not opchains.exists("chain"))
    await until(lambda: opchains.find("secrets", "chain-jwt") is None)


async def test_a_jwt_that_somebody_made_under_that_name_is_used_as_it_is(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    before = opchains.live("secrets", "chain-jwt")
    opchains.make_chain(double, l2=WITHOUT_JWT)
    async with family(double):
        await until(opchains.is_running)
        opchains.delete("chain")
        await until(lambda: not opchains.exists("chain"))
    assert opchains.live("secrets", "chain-jwt") == before


async def test_keys_tokens_and_urls_are_in_secrets_and_nowhere_else(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    url_key, not_a_jwt = "url-canary-4f1d", "jwt-canary-77aa"
    reference = {"name": "chain-l1-url", "key": "url"}
    opchains.make_secrets()
    opchains.secret("chain-l1-url", url=f"{double.l1}?key={url_key}")
    opchains.make_chain(double, l1={"rpcUrl": None, "rpcUrlSecretRef": reference})
    known = [chains.BATCHER_KEY, chains.PROPOSER_KEY, chains.JWT, url_key]
    with structlog.testing.capture_logs() as logs:
        async with family(double):
            await until(opchains.is_running)
            assert not places_of(known, opchains, logs)
            opchains.put("batcher-key", chains.STRANGER_KEY)
            opchains.put("jwt", not_a_jwt)
            opchains.edit("secrets", "chain-l1-url", {"stringData": {"url": f"no {url_key}"}})
            await until(lambda: all(one in opchains.message("chain") for one in ("url", "jwt")))
            assert chains.STRANGER in opchains.message("chain")
            known += [chains.STRANGER_KEY, not_a_jwt]
            assert not places_of(known, opchains, logs)


async def test_a_genesis_of_several_megabytes_is_kept_packed_and_unpacked_by_its_pod(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    code = "0x" + "6080604052" * 64
    large = chains.genesis()
    large["alloc"] |= {
        f"{number:040x}": {"balance": "0x1", "code": code} for number in range(_ACCOUNTS)
    }
    text = chains.encoded(large)
    assert len(text) > 5 * 2**20
    opchains.make_secrets(but={"genesis"})
    content = {"genesis.json.gz": b64encode(packed(text)).decode()}
    opchains.make("secrets", {"metadata": {"name": "chain-genesis"}, "data": content})
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
    kept = opchains.live("configmaps", "chain-geth")
    assert [*kept["binaryData"]] == ["genesis.json.gz"]
    assert not kept.get("data")
    assert names(opchains.workload("geth")) == ["unpack", "init"]


def names(workload: Object) -> list[str]:
    return [one["name"] for one in workload["spec"]["template"]["spec"]["initContainers"]]


async def test_a_genesis_that_does_not_fit_says_so_and_starts_nothing(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    """A megabyte of zeros is a gigabyte when it is unpacked."""
    opchains.make_secrets(but={"genesis"})
    bomb = packed(b" " * (33 * 2**20))
    content = {"genesis.json.gz": b64encode(bomb).decode()}
    opchains.make("secrets", {"metadata": {"name": "chain-genesis"}, "data": content})
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "InvalidConfiguration")
    assert "more than 32 MiB when unpacked" in opchains.message("chain")
    assert not opchains.has_graph()


async def test_secrets_that_no_stage_needs_any_more_are_removed(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        (before,) = sensitive(opchains)
        opchains.put("jwt", chains.JWT[::-1])
        await until(lambda: before not in sensitive(opchains))
        await until(opchains.is_running)
    assert len(sensitive(opchains)) == 1
    kept = opchains.live("secrets", "chain-geth")["data"]["jwt"]
    assert b64decode(kept).decode() == chains.JWT[::-1]


def sensitive(opchains: Chains) -> list[str]:
    """Secrets that graphs refer to."""
    return [
        one["metadata"]["name"]
        for one in opchains.all("secrets")
        if one["type"] == "pequod.io/sensitive"
    ]
