"""Several operators: one acts, another takes over, and none acts after it was replaced."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from faultactions import Gate, answer
from faultproxy import FaultProxy, Rule, calls, fault_proxy
from instances import Foreground, eventually
from operators import (
    LEASE,
    ClusterObjects,
    Operator,
    holder,
    operator,
    operator_token,
)
from pequod.kube.kubeconfig import own_access
from waiting import eventually as eventually_here

_numbers = count()


@pytest.fixture(autouse=True)
def nobody_leads_afterwards(plane: Foreground) -> Iterator[None]:
    yield
    plane.api.call("DELETE", LEASE)


@contextmanager
def replicas(number: int, kubeconfig: Path, folder: Path) -> Iterator[list[Operator]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(operator(kubeconfig, folder / f"operator-{next(_numbers)}.log"))
            for _ in range(number)
        ]


def leader_of(operators: list[Operator], plane: Foreground) -> Operator:
    """The one whose name the Lease has."""

    def found() -> list[Operator]:
        name = holder(plane.api)
        return [one for one in operators if name and one.identity == name]

    eventually(lambda: len(found()) == 1)
    return found()[0]


def test_a_killed_leader_is_followed_by_another_that_goes_on(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    with replicas(2, account, tmp_path) as operators:
        for one in operators:
            one.wait_until_ready()
        leader = leader_of(operators, plane)
        clusters.create("first")
        eventually(lambda: clusters.is_ready("first"))
        leader.end(signal.SIGKILL)
        clusters.create("second")
        eventually(lambda: clusters.is_ready("second"))
        assert leader_of(operators, plane) is not leader


def test_a_leader_that_is_told_to_stop_gives_the_lease_back(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    clusters.create("first")
    with replicas(1, account, tmp_path) as operators:
        leader = leader_of(operators, plane)
        eventually(lambda: clusters.is_ready("first"))
        assert leader.end() == 0
        assert holder(plane.api) == ""
        assert leader.count("lease released") == 1
        assert "Traceback" not in leader.text


def test_case_38_handing_over_again_and_again_leaves_every_object_right(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    def start() -> Operator:
        log = tmp_path / f"operator-{next(_numbers)}.log"
        return stack.enter_context(operator(account, log))

    clusters.create("steady")
    with ExitStack() as stack:
        operators = [start(), start()]
        for number in range(6):
            leader = leader_of(operators, plane)
            clusters.create(f"cluster-{number}")
            assert leader.end() == 0
            operators.remove(leader)
            operators.append(start())
            eventually(partial(clusters.is_ready, f"cluster-{number}"))
    assert clusters.status("steady")["observedGeneration"] == 1
    assert clusters.is_ready("steady")


def waits_for_an_answer(proxy: FaultProxy) -> tuple[Rule, Gate]:
    """Its pass has asked something, and has something to write when the answer comes."""
    gate = Gate()
    return proxy.rule(calls("GET", "/namespaces/kube-system"), gate.stall), gate


def waits_for_its_turn(proxy: FaultProxy) -> tuple[Rule, Gate]:
    """Its write was put off by the API server, and is due when it wakes up."""
    put_off = answer(429, reason="TooManyRequests", after=1)
    return proxy.rule(calls("PATCH", "/status"), put_off, times=1), Gate()


@pytest.mark.parametrize("waits", [waits_for_an_answer, waits_for_its_turn])
async def test_case_37_a_leader_that_was_paused_writes_nothing_when_it_wakes_up(
    plane: Foreground,
    account: Path,
    clusters: ClusterObjects,
    tmp_path: Path,
    waits: Callable[[FaultProxy], tuple[Rule, Gate]],
) -> None:
    token = await asyncio.to_thread(operator_token, plane.api)
    async with fault_proxy(own_access(plane.api.kubeconfig)) as proxy:
        through = proxy.kubeconfig(tmp_path / "through-the-proxy", token)
        with operator(through, tmp_path / "paused.log") as paused:
            await asyncio.to_thread(paused.wait_until_leading)
            asked, gate = waits(proxy)
            await asyncio.to_thread(clusters.create, "contested")
            await asyncio.to_thread(eventually, lambda: asked.seen > 0)
            paused.send(signal.SIGSTOP)
            with operator(account, tmp_path / "second.log") as second:
                await asyncio.to_thread(second.wait_until_leading)
                await asyncio.to_thread(eventually, lambda: clusters.is_ready("contested"))
                before = clusters.get("contested")["metadata"]["resourceVersion"]
                woken = len(proxy.journal)
                gate.open()
                paused.send(signal.SIGCONT)
                await asyncio.to_thread(eventually, lambda: paused.count("no longer leading") == 1)
                await eventually_here(
                    lambda: any("/leases" in call.path for call in proxy.journal[woken:]),
                    "it is a candidate again",
                )
                written = [
                    call
                    for call in proxy.journal[woken:]
                    if call.writes and "/leases" not in call.path
                ]
                assert written == []
                assert clusters.get("contested")["metadata"]["resourceVersion"] == before
                assert holder(plane.api) == second.identity


async def test_case_39_a_leader_whose_lease_cannot_be_written_steps_down_for_another(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    token = await asyncio.to_thread(operator_token, plane.api)
    async with fault_proxy(own_access(plane.api.kubeconfig)) as proxy:
        through = proxy.kubeconfig(tmp_path / "through-the-proxy", token)
        with operator(through, tmp_path / "first.log") as first:
            await asyncio.to_thread(first.wait_until_leading)
            rule = proxy.rule(calls("PUT", "/leases/"), answer(500))
            await asyncio.to_thread(eventually, lambda: first.count("no longer leading") == 1)
            with operator(account, tmp_path / "second.log") as second:
                await asyncio.to_thread(second.wait_until_leading)
                await asyncio.to_thread(clusters.create, "after")
                await asyncio.to_thread(eventually, lambda: clusters.is_ready("after"))
                rule.remove()
                assert await asyncio.to_thread(second.end) == 0
                await asyncio.to_thread(eventually, lambda: holder(plane.api) == first.identity)
                assert first.count("leading") == 2


def test_case_39_a_lease_that_is_deleted_again_and_again_has_one_holder_all_the_time(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    with replicas(2, account, tmp_path) as operators:
        for one in operators:
            one.wait_until_ready()
        leader = leader_of(operators, plane)
        (other,) = (one for one in operators if one is not leader)
        eventually(lambda: other.count("another replica leads") == 1)
        for _ in range(5):
            assert plane.api.call("DELETE", LEASE).code == 200
            eventually(lambda: holder(plane.api) == leader.identity)
        assert leader.count("no longer leading") == 0
        assert other.count("leading") == 0
        clusters.create("served")
        eventually(lambda: clusters.is_ready("served"))
