"""Case 37, without a race: an operator that leads, and is told otherwise by its fence."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from clusters import Api
from operators import ClusterObjects, operator_kubeconfig
from pequod.kube.errors import FencedError
from pequod.operator import operate
from pequod.runtime.leader import Leadership
from pequod.settings import Settings
from waiting import until


def fenced_passes() -> float:
    labels = {"controller": "cluster", "result": "fenced"}
    return REGISTRY.get_sample_value("pequod_reconcile_total", labels) or 0.0


async def test_case_37_no_write_of_the_operator_gets_past_a_closed_fence(
    api: Api, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_self: Leadership) -> None:
        raise FencedError("another replica leads")

    monkeypatch.setattr(Leadership, "check", closed)
    clusters = ClusterObjects(api, namespace)
    clusters.create("untouched")
    account = await asyncio.to_thread(operator_kubeconfig, api, tmp_path / "kubeconfig")
    before, stop = fenced_passes(), asyncio.Event()
    with capture_logs():
        running = asyncio.create_task(operate(Settings(kubeconfig=account), stop))
        await until(lambda: fenced_passes() > before + 1)
        stop.set()
        await running
    assert clusters.status("untouched") == {"observedGeneration": -1}
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    assert api.get(path).body["items"] == []
