"""What the Secrets of a chain say: waited for, refused as a whole, changed while it runs."""

from functools import partial

import pytest

import chains
from doubles.chain import ChainDouble
from graphs import Object, grant
from rollups import Chains, StartFamily
from waiting import until

SECRETS = ("genesis", "rollup", "jwt", "l1", "batcher-key", "proposer-key")
STARTED = ("services", "persistentvolumeclaims", "apps/v1/statefulsets", "apps/v1/deployments")


def nothing_has_started(opchains: Chains) -> bool:
    """Whether there is nothing but what somebody else has made."""
    secrets = {one["metadata"]["name"] for one in opchains.all("secrets")}
    maps = {one["metadata"]["name"] for one in opchains.all("configmaps")}
    return (
        not opchains.has_graph()
        and not any(opchains.all(resource) for resource in STARTED)
        and secrets <= {f"chain-{one}" for one in SECRETS}
        and maps <= {"kube-root-ca.crt"}
    )


async def test_secrets_that_come_later_are_waited_for_and_all_of_them_named_at_once(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "SecretNotFound")
        assert opchains.chain_phase() == "ConfigLoading"
        told = opchains.message("chain", "ConfigurationValid")
        assert all(f"Secret chain-{one} " in told for one in SECRETS), told
        assert nothing_has_started(opchains)
        opchains.make_secrets(but={"jwt"})
        await until(lambda: "chain-genesis" not in opchains.message("chain"))
        assert "Secret chain-jwt (spec.l2.jwtSecret" in opchains.message("chain")
        opchains.make("secrets", next(one for one in chains.secrets() if is_jwt(one)))
        await until(opchains.is_running)


def is_jwt(secret: Object) -> bool:
    return bool(secret["metadata"]["name"] == "chain-jwt")


async def test_a_secret_without_its_key_is_named_with_the_keys_that_it_has(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets(but={"rollup"})
    opchains.secret("chain-rollup", **{"rollup.yaml": "{}"})
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "KeyNotFound")
    assert opchains.chain_phase() == "ConfigLoading"
    said = "Secret chain-rollup has no key rollup.json; it has rollup.yaml"
    assert said in opchains.message("chain")
    assert nothing_has_started(opchains)


async def test_nothing_starts_on_an_invalid_configuration_until_every_problem_is_mended(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.put("rollup", chains.changed(chains.rollup(), ".l2_chain_id", 778))
    opchains.put("jwt", "too short")
    opchains.put("batcher-key", chains.STRANGER_KEY)
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "InvalidConfiguration")
        told = opchains.message("chain", "ConfigurationValid")
        for problem in (
            "Secret chain-rollup, rollup.json, .l2_chain_id: is 778, but spec.l2.chainId is 777",
            "Secret chain-jwt, jwt: must be 32 bytes",
            f"Secret chain-batcher-key, key: is the key of {chains.STRANGER}",
        ):
            assert problem in told
        assert opchains.condition("chain", "ConfigurationValid")["status"] == "False"
        assert opchains.condition("chain", "Stalled")["status"] == "True"
        assert opchains.chain_phase() == "Error"
        opchains.put("jwt", chains.JWT)
        opchains.put("batcher-key", chains.BATCHER_KEY)
        await until(lambda: "jwt" not in (told := opchains.message("chain")) and "key" not in told)
        assert nothing_has_started(opchains)
        opchains.put("rollup", chains.rollup())
        await until(opchains.is_running)
        assert not opchains.condition("chain", "Stalled")


@pytest.mark.parametrize(
    ("part", "content", "problem"),
    [
        (
            "batcher-key",
            chains.STRANGER_KEY,
            f"is the key of {chains.STRANGER}, but Secret chain-rollup, rollup.json, "
            f".genesis.system_config.batcherAddr is {chains.BATCHER}",
        ),
        ("jwt", f"{chains.JWT}00", "must be 32 bytes as 64 hexadecimal digits"),
        (
            "genesis",
            chains.changed(chains.genesis(), ".config.chainId", 1),
            ".config.chainId: is 1, but spec.l2.chainId is 777",
        ),
        (
            "rollup",
            chains.changed(chains.rollup(), ".l1_chain_id", 1),
            ".l1_chain_id: is 1, but spec.l1.chainId is 1337",
        ),
        ("proposer-key", chains.BATCHER_KEY, "is the batcher's key as well"),
    ],
    ids=["key", "jwt", "chain id", "L1 chain id", "one key for two"],
)
async def test_what_does_not_fit_together_is_refused_before_anything_starts(
    family: StartFamily,
    opchains: Chains,
    double: ChainDouble,
    part: str,
    content: object,
    problem: str,
) -> None:
    opchains.make_secrets()
    opchains.put(part, content)
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "InvalidConfiguration")
    assert problem in opchains.message("chain")
    assert nothing_has_started(opchains)


async def test_a_running_chain_keeps_running_while_an_edit_of_a_secret_is_invalid(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.put("rollup", chains.without(chains.rollup(), ".block_time"))
        await until(lambda: opchains.reason("chain") == "InvalidConfiguration")
        told = opchains.message("chain")
        assert ".block_time: is missing" in told
        assert "what runs stays as it is" in told
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        assert opchains.chain_phase() == "Running"
        assert opchains.condition("chain", "L2ServicesReady")["status"] == "True"
        assert opchains.condition("chain", "Stalled")["status"] == "True"
        assert opchains.identities() == before
        opchains.put("rollup", chains.rollup())
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_a_running_chain_keeps_running_while_its_spec_is_invalid(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    wrong = chains.STRANGER
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.alter(l1={"contractAddresses": {"optimismPortal": wrong}})
        await until(lambda: opchains.reason("chain") == "InvalidConfiguration")
        assert f"spec.l1.contractAddresses.optimismPortal is {wrong}" in opchains.message("chain")
        assert opchains.chain_phase() == "Running"
        assert opchains.identities() == before
        told = opchains.status("chain")["l1ContractAddresses"]
        assert told["optimismPortal"] == chains.OPTIMISM_PORTAL, "what the programs know"
        opchains.alter(l1={"contractAddresses": {"optimismPortal": chains.OPTIMISM_PORTAL}})
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_a_running_chain_keeps_running_while_a_secret_is_gone(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(opchains.is_running)
        before = opchains.identities()
        opchains.remove("secrets", "chain-batcher-key")
        await until(lambda: opchains.reason("chain") == "SecretNotFound")
        height = opchains.height()
        await until(lambda: opchains.height() > height)
        assert opchains.chain_phase() == "Running"
        opchains.make_secrets(but=set(SECRETS) - {"batcher-key"})
        await until(opchains.is_running)
        assert opchains.identities() == before


async def test_a_name_that_no_service_can_have_is_refused(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_chain(double, "9lives")
    async with family(double):
        await until(lambda: opchains.reason("9lives") == "InvalidConfiguration")
    assert "must begin with a letter" in opchains.message("9lives")
    assert opchains.chain_phase("9lives") == "Error"
    assert not opchains.has_graph("9lives")


async def test_a_graph_that_is_somebody_elses_is_not_taken_over(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    grant(opchains.api, opchains.namespace)
    opchains.graphs.create("opchain-chain", {"id": "a", "object": mine})
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.reason("chain") == "AlreadyExists")
        await until(partial(opchains.graphs.is_ready, "opchain-chain"))
    assert "was made for no source" in opchains.message("chain")
    assert opchains.chain_phase() == "Error"
    assert opchains.find("configmaps", "mine") is not None
