"""Somebody else may take a port between our choosing it and a component's using it."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pequod.dev import session as module
from pequod.dev.keeper import PortTakenError
from pequod.dev.layout import Ports
from pequod.dev.ports import free_ports
from pequod.dev.session import session
from pequod.dev.wish import Wish, programs_for


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEQUOD_STATE_DIR", str(tmp_path))
    return tmp_path


async def test_a_port_that_was_lost_is_replaced_by_another(
    monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    wish = Wish(node="none")
    programs = await programs_for(wish, lambda _: None)
    chosen: list[Ports] = []
    with socket.create_server(("127.0.0.1", 0)) as thief:
        stolen = thief.getsockname()[1]

        def unlucky_once(address: str, *, api_server: int = 0) -> Ports:
            ports = free_ports(address, api_server=api_server)
            chosen.append(ports if chosen else replace(ports, etcd_client=stolen))
            return chosen[-1]

        monkeypatch.setattr(module, "free_ports", unlucky_once)
        async with session(wish, programs) as plane:
            assert plane.plan.ports == chosen[1]
            assert "kube-system" in await plane.kubectl.run("get", "namespaces")
    assert [path.name for path in (state / "dev").iterdir()] == [".lock"]


async def test_a_port_that_was_insisted_upon_and_lost_is_said(
    monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        stolen = thief.getsockname()[1]
        wish = Wish(node="none", port=stolen)
        programs = await programs_for(wish, lambda _: None)

        def unaware(address: str, *, api_server: int = 0) -> Ports:
            return replace(free_ports(address), api_server=api_server)

        monkeypatch.setattr(module, "free_ports", unaware)
        with pytest.raises(PortTakenError, match=r"kube-apiserver needs .*, which another program"):
            async with session(wish, programs):
                pass
    assert [path.name for path in (state / "dev").iterdir()] == [".lock"]
