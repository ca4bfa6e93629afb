"""The operator while its API server misbehaves: it waits, goes on, and loses nothing."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from faultactions import answer, commit_then_drop, delayed
from faultproxy import FaultProxy, calls, fault_proxy
from instances import Foreground, eventually, foreground
from operators import (
    ClusterObjects,
    Operator,
    holder,
    operator,
    operator_kubeconfig,
    operator_token,
)
from pequod.kube.kubeconfig import own_access
from waiting import until

STATUS = calls("PATCH", "/status")


def has_ended(running: Operator) -> bool:
    return running.process.poll() is not None


@pytest.fixture
async def proxy(plane: Foreground) -> AsyncIterator[FaultProxy]:
    async with fault_proxy(own_access(plane.api.kubeconfig)) as running:
        yield running


@pytest.fixture
async def through(proxy: FaultProxy, plane: Foreground, tmp_path: Path) -> Path:
    """The operator's own account, by way of the proxy."""
    token = await asyncio.to_thread(operator_token, plane.api)
    return proxy.kubeconfig(tmp_path / "through-the-proxy", token)


async def test_case_25_a_storm_of_conflicts_ends_with_the_right_status_and_bounded_writes(
    proxy: FaultProxy, through: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    proxy.rule(STATUS, answer(409, reason="Conflict"), times=4)
    with operator(through, tmp_path / "log"):
        await asyncio.to_thread(clusters.create, "one")
        await until(lambda: clusters.is_ready("one"))
    assert len(proxy.asked(STATUS)) <= 8


async def test_case_28_a_status_whose_answer_was_lost_is_read_back_and_not_written_twice(
    proxy: FaultProxy, through: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    proxy.rule(STATUS, commit_then_drop, times=1)
    with operator(through, tmp_path / "log", "--cluster-probe-interval=1s") as running:
        await asyncio.to_thread(clusters.create, "one")
        await until(lambda: clusters.is_ready("one"))
        version = clusters.get("one")["metadata"]["resourceVersion"]
        await until(lambda: 'result="success"} 2' in running.metrics())
        assert clusters.get("one")["metadata"]["resourceVersion"] == version


async def test_case_26_a_server_that_asks_for_patience_gets_it_and_the_lease_is_still_renewed(
    plane: Foreground,
    proxy: FaultProxy,
    through: Path,
    clusters: ClusterObjects,
    tmp_path: Path,
) -> None:
    with operator(through, tmp_path / "log") as running:
        await asyncio.to_thread(running.wait_until_leading)
        rule = proxy.rule(
            lambda call: "/leases/" not in call.path and not call.watches,
            answer(429, reason="TooManyRequests", after=1),
        )
        await asyncio.to_thread(clusters.create, "one")
        await until(lambda: rule.seen >= 3)
        refused = rule.seen
        rule.remove()
        await until(lambda: clusters.is_ready("one"))
        assert refused < 20
        assert running.count("no longer leading") == 0
        assert holder(plane.api) == running.identity


@pytest.mark.parametrize("code", [500, 503, 504])
async def test_case_27_a_burst_of_errors_changes_nothing_that_was_known(
    proxy: FaultProxy, through: Path, clusters: ClusterObjects, tmp_path: Path, code: int
) -> None:
    with operator(through, tmp_path / "log", "--cluster-probe-interval=1s") as running:
        await asyncio.to_thread(clusters.create, "one")
        await until(lambda: clusters.is_ready("one"))
        rule = proxy.rule(lambda call: "/leases/" not in call.path, answer(code))
        await until(lambda: rule.seen >= 5)
        assert clusters.is_ready("one")
        rule.remove()
        await asyncio.to_thread(clusters.create, "two")
        await until(lambda: clusters.is_ready("two"))
        assert running.page("/healthz")[0] == 200


async def test_case_29_a_slow_server_delays_and_breaks_nothing(
    proxy: FaultProxy, through: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    proxy.rule(lambda call: "/leases/" not in call.path, delayed(0.5))
    with operator(through, tmp_path / "log") as running:
        names = [f"slow-{number}" for number in range(8)]
        for name in names:
            await asyncio.to_thread(clusters.create, name)
        for name in names:
            await until(partial(clusters.is_ready, name))
        assert running.count("no longer leading") == 0


def test_case_35_killed_components_of_the_control_plane_do_not_matter_for_long(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    with operator(account, tmp_path / "log") as running:
        running.wait_until_ready()
        for component in ("kube-apiserver", "etcd"):
            name = f"after-{component}"
            plane.kill_component(component)
            eventually(plane.ready)
            clusters.create(name)
            eventually(partial(clusters.is_ready, name))
        assert running.process.poll() is None


def test_case_27_an_outage_is_waited_for(
    plane: Foreground, account: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    with operator(account, tmp_path / "log") as running:
        running.wait_until_leading()
        clusters.create("before")
        eventually(lambda: clusters.is_ready("before"))
        server = plane.state().components["kube-apiserver"].pid
        os.kill(server, signal.SIGSTOP)
        try:
            eventually(lambda: running.count("no longer leading") == 1)
        finally:
            os.kill(server, signal.SIGCONT)
        clusters.create("after")
        eventually(lambda: clusters.is_ready("after"))
        assert clusters.is_ready("before")
        assert running.page("/healthz")[0] == 200


async def test_case_2_the_operator_dies_after_each_write_and_the_next_one_ends_the_work(
    proxy: FaultProxy, through: Path, clusters: ClusterObjects, tmp_path: Path
) -> None:
    """Sieve's first pattern, for every write of one object's way to Ready."""
    for number in range(1, 4):
        name = f"crash-{number}"
        with operator(through, tmp_path / f"dies-{number}.log") as dying:

            async def die(exchange: object, dying: object = dying) -> object:
                result = await commit_then_drop(exchange)  # type: ignore[arg-type]
                dying.process.kill()  # type: ignore[attr-defined]
                return result

            await asyncio.to_thread(dying.wait_until_ready)
            rule = proxy.rule(
                lambda call: call.writes and "/leases" not in call.path,
                die,  # type: ignore[arg-type]
                first=number,
            )
            await asyncio.to_thread(clusters.create, name)
            await until(partial(has_ended, dying))
            rule.remove()
        with operator(through, tmp_path / f"next-{number}.log"):
            await until(partial(clusters.is_ready, name))


def test_case_26_a_truly_overloaded_server_is_served_in_the_end(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An API server that takes a few requests at a time, and is asked by forty objects at once."""
    state = tmp_path_factory.mktemp("busy") / "state"
    flags = (
        "--api-server=enable-priority-and-fairness=false",
        "--api-server=max-requests-inflight=4",
        "--api-server=max-mutating-requests-inflight=2",
    )
    with foreground(state, "up", "--node=none", "--crds", *flags) as busy:
        busy.wait_until_ready()
        account = operator_kubeconfig(busy.api, tmp_path / "kubeconfig")
        clusters = ClusterObjects(busy.api, "default")
        names = [f"cluster-{number}" for number in range(40)]
        for name in names:
            clusters.create(name)
        with operator(account, tmp_path / "log") as running:
            for name in names:
                eventually(partial(clusters.is_ready, name))
            assert running.process.poll() is None
            assert "pequod_api_throttled_total" in running.metrics()
