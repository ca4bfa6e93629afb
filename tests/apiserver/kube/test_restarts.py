"""A cache outlives the API server and its store, on a control plane that tests may kill."""

import asyncio
import json
import secrets
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from faultactions import Gate, edited
from faultproxy import fault_proxy, follows, lists
from following import following, put, remove, settings
from instances import Foreground, foreground
from pequod.kube.client import Client, Write
from pequod.kube.errors import KubeError
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport
from waiting import eventually

RECOVERY = 60.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreground]:
    with foreground(tmp_path_factory.mktemp("own") / "state", "up", "--node=none") as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
async def own(plane: Foreground) -> AsyncIterator[Client]:
    transport = Transport(own_access(plane.api.kubeconfig))
    yield Client(transport)
    await transport.close()


@pytest.fixture
async def place(own: Client) -> str:
    """A namespace of the test's own."""
    name = f"test-{secrets.token_hex(4)}"
    await own.create(NAMESPACES, {"metadata": {"name": name}})
    return name


def compact(plane: Foreground, revision: str) -> None:
    """Let etcd forget everything before a revision."""
    pid = plane.state().components["etcd"].pid
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    flag = "--listen-client-urls="
    [server] = [word.removeprefix(flag) for word in command if word.startswith(flag)]
    pki = plane.root / "pki"
    tls = ssl.create_default_context(cafile=pki / "etcd-ca.crt")
    tls.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
    body = json.dumps({"revision": revision, "physical": True}).encode()
    request = urllib.request.Request(f"{server}/v3/kv/compaction", method="POST", data=body)
    with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
        assert answer.status == 200


async def kill(plane: Foreground, component: str) -> None:
    """Kill a component, and wait until the API server answers again."""
    await asyncio.to_thread(plane.kill_component, component)
    await eventually(
        lambda: asyncio.to_thread(plane.answers), "the API server is back", within=RECOVERY
    )


async def test_case_17_a_store_that_has_forgotten_where_we_were_is_listed_again(
    plane: Foreground, own: Client, place: str
) -> None:
    gate = Gate()
    said: list[bytes] = []

    async def listening(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            said.append(line)
            yield line

    async with fault_proxy(own_access(plane.api.kubeconfig)) as proxy:
        transport = Transport(proxy.access())
        proxy.rule(follows, gate.hold, times=1)
        proxy.rule(follows, edited(listening))
        await put(own, place, "kept", "removed", "replaced")
        async with following(Client(transport), place) as run:
            await remove(own, place, "removed", "replaced")
            await put(own, place, "replaced", "added")
            last = await own.apply(CONFIG_MAPS, settings(place, "added", a="1"))
            await asyncio.to_thread(compact, plane, last["metadata"]["resourceVersion"])
            await kill(plane, "kube-apiserver")
            assert run.names() == ["kept", "removed", "replaced"]
            run.changes.clear()
            gate.open(discard=True)
            await eventually(lambda: run.get("added"), "what was missed is here", within=RECOVERY)
            await run.equals(own)
            told = sorted(change.key.name for change in run.changes)
            assert told == ["added", "removed", "replaced"]
            assert run.of("removed")[0].after is None
            await put(own, place, "later")
            await eventually(lambda: run.get("later"), "it follows again")
        await transport.close()
        refused = [call.code for call in proxy.asked(follows)].count(410)
        assert refused + sum(b'"code":410' in line for line in said) == 1
        assert len(proxy.asked(lists)) == 2


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
async def test_case_35_a_cache_converges_after_a_part_of_the_control_plane_was_killed(
    component: str, plane: Foreground, own: Client, place: str
) -> None:
    name = f"after-{component}"
    await put(own, place, "here", "there", a=component)
    async with following(own, place) as run:
        before = run.names()
        await kill(plane, component)
        assert run.names() == before, "nothing is dropped because nobody answers"

        async def written() -> bool:
            try:
                await own.apply(CONFIG_MAPS, settings(place, name), Write(force=True))
            except KubeError:
                return False
            return True

        await eventually(written, "the API server takes writes again", within=RECOVERY)
        await eventually(lambda: run.get(name), "the cache follows again", within=RECOVERY)
        await remove(own, place, "there")
        await run.equals(own)
        assert len(run.of("here")) == 1
        assert len(run.of("there")) == 2
