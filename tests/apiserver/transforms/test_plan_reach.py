"""A plan reaches no further than an execution would."""

import asyncio
from functools import partial
from pathlib import Path

from commandline import Pequod
from graphs import OPERATOR_NAMESPACE, node, object_
from transforms import NODES, StartPlatform, Transforms, inline, written
from waiting import until

ADOPT = {"mode": "Adopt"}
ELSEWHERE = """
package elsewhere

#Input: {where: string, mode: *"Apply" | "Observe" | "Adopt"}
input: #Input
context: {name: string, namespace: string}
graph: {
	metadata: name: "elsewhere"
	nodes: [{
		id: "theirs"
		applyPolicy: mode: input.mode
		object: {apiVersion: "v1", kind: "ConfigMap"}
		object: metadata: {name: "theirs", namespace: input.where}
	}, {
		id: "wide"
		object: {apiVersion: "v1", kind: "Namespace", metadata: name: "wide"}
	}, {
		id: "fine"
		object: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "fine"}
	}]
}
"""
"""A module that asks for objects of others."""


async def test_a_confined_dry_run_reads_nothing_of_others_and_refuses_in_the_same_words(
    transforms: Transforms, platform: StartPlatform
) -> None:
    for mode in ("Apply", "Observe", "Adopt"):
        given = {"where": "default", "mode": mode}
        transforms.ask(mode.lower(), given, cueRef=inline(ELSEWHERE), dryRun=True)
    async with platform() as running:
        for name in ("apply", "observe", "adopt"):
            await until(partial(transforms.because, name, "OutOfReach"))
        said = {name: transforms.says(name)["message"] for name in ("apply", "observe", "adopt")}
        assert not running.journal.of("/configmaps/theirs")
        assert not running.journal.of("/namespaces/wide")
        assert "ConfigMap/default/theirs is outside of the namespace" in said["apply"]
        assert "Namespace/wide is cluster-scoped" in said["apply"]
        for name, message in said.items():
            assert "plan" not in transforms.told(name)
            transforms.alter(name, dryRun=False)
            await until(partial(transforms.because, name, "OutOfReach", "Executed"))
            assert transforms.says(name, "Executed")["message"].endswith(f": {message}")


async def test_a_plan_that_was_made_goes_when_the_next_one_is_refused(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"}, dryRun=True)
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
        transforms.alter("web", cueRef=inline(ELSEWHERE), input={"where": "default", "value": None})
        await until(partial(transforms.because, "web", "OutOfReach"))
        assert "plan" not in transforms.told("web")


async def test_the_operators_namespace_is_closed_to_plans_of_every_account(
    transforms: Transforms, platform: StartPlatform, tenant: str
) -> None:
    given = {"where": OPERATOR_NAMESPACE}
    transforms.ask("web", given, cueRef=inline(ELSEWHERE), serviceAccountName=tenant, dryRun=True)
    async with platform() as running:
        await until(partial(transforms.because, "web", "OutOfReach"))
        assert not running.journal.of("/configmaps/theirs")
    message = transforms.says("web")["message"]
    assert "which is closed to graphs" in message
    assert "wide" not in message, "RBAC decides about the rest"


async def test_the_command_says_what_would_be_out_of_reach_and_what_it_assumes(
    transforms: Transforms, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    file = written(tmp_path, {"where": "default"}, cueRef=inline(ELSEWHERE))
    refused = await asyncio.to_thread(pequod, "plan", file, *place, code=3)
    said = " ".join(refused.stdout.split())
    assert "ConfigMap/default/theirs is outside of the namespace" in said
    assert "Namespace/wide is cluster-scoped" in said
    assert "--identity=confined" in said
    assert "1 to create, 2 would be refused" in said
    file = written(
        tmp_path, {"where": "default"}, cueRef=inline(ELSEWHERE), serviceAccountName="mighty"
    )
    allowed = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert "3 to create" in allowed.stdout


async def test_accounts_and_pods_of_others_are_not_planned_to_be_adopted(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.make("serviceaccounts", {"metadata": {"name": "mighty"}})
    mighty = node("mighty", object_("v1", "ServiceAccount", "mighty"), applyPolicy=ADOPT)
    transforms.ask("web", {"nodes": [mighty]}, cueRef=inline(NODES), dryRun=True)
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
        (change,) = transforms.told("web")["plan"]["changes"]
        assert "would be refused: ServiceAccount" in change["message"]
        transforms.alter("web", dryRun=False)
        await until(partial(transforms.because, "web", "OutOfReach", "Executed"))
        said = transforms.says("web", "Executed")["message"]
    assert change["message"].removeprefix("would be refused: ") in said
