"""What a client does when the API server is slow, overloaded, away, or somebody else."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from clusters import Api
from faultactions import Gate, answer, commit_then_drop, delayed, drop, truncated
from faultproxy import FaultProxy, calls
from pequod.dev.pki import Authority
from pequod.kube.auth import Access, Endpoint, Fixed
from pequod.kube.client import Client, Exactly, Selection, Write
from pequod.kube.errors import (
    BrokenAnswerError,
    KubeError,
    NoAnswerError,
    NotFoundError,
    OverloadedError,
    ServerError,
    TimedOutError,
    UnreachableError,
    UntrustedServerError,
)
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES
from pequod.kube.kubeconfig import own_access
from pequod.kube.objects import Object
from pequod.kube.transport import Limits, Transport
from waiting import eventually

DEFAULT = "default"


def settings(namespace: str, name: str = "settings", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def test_case_26_when_told_to_come_back_later_every_request_waits(
    proxy: FaultProxy, proxied: Client
) -> None:
    proxy.rule(calls("GET", "/namespaces/kube-system"), answer(429, after=1), times=1)
    refused = asyncio.create_task(proxied.get(NAMESPACES, "kube-system"))
    await eventually(lambda: proxy.journal, "the first request was refused")
    await asyncio.gather(*(proxied.get(NAMESPACES, DEFAULT) for _ in range(5)))
    await refused
    first, *others = proxy.journal
    assert first.code == 429
    assert [call.code for call in others] == [200] * 6
    assert all(call.at - first.at >= 1 for call in others)


async def test_case_26_without_a_time_it_waits_longer_each_time(
    proxy: FaultProxy, proxied: Client
) -> None:
    proxy.rule(calls("GET"), answer(429), times=3)
    await proxied.get(NAMESPACES, DEFAULT)
    assert [call.code for call in proxy.journal] == [429, 429, 429, 200]
    times = [call.at for call in proxy.journal]
    first, second, third = (after - before for before, after in pairwise(times))
    assert 0.2 <= first < second < third


async def test_case_26_patience_ends(proxy: FaultProxy) -> None:
    transport = Transport(proxy.access(), limits=Limits(patience=0.5))
    proxy.rule(calls("GET"), answer(429, "too many requests", after=1))
    with pytest.raises(OverloadedError, match="too many requests") as raised:
        await Client(transport).get(NAMESPACES, DEFAULT)
    assert raised.value.retry_after == 1
    assert len(proxy.journal) == 1
    await transport.close()


async def test_not_more_requests_than_the_limit_run_at_a_time(
    proxy: FaultProxy, proxied: Client
) -> None:
    gate = Gate()
    proxy.rule(calls("GET"), gate.stall)
    asked = [asyncio.create_task(proxied.get(NAMESPACES, DEFAULT)) for _ in range(100)]
    await eventually(lambda: proxy.in_flight == 32, "as many as may have been sent")
    gate.open()
    await asyncio.gather(*asked)
    assert proxy.most_in_flight == 32
    assert len(proxy.journal) == 100


NEVER = settings(DEFAULT, "never")
VERBS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": lambda client: client.get(NAMESPACES, DEFAULT),
    "list": lambda client: client.list(NAMESPACES),
    "create": lambda client: client.create(CONFIG_MAPS, NEVER),
    "apply": lambda client: client.apply(CONFIG_MAPS, NEVER),
    "patch": lambda client: client.patch(CONFIG_MAPS, "never", {}, namespace=DEFAULT),
    "delete": lambda client: client.delete(CONFIG_MAPS, "n", Exactly("1"), namespace=DEFAULT),
    "read": lambda client: client.read("/version", Object),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_ends_when_there_is_no_answer(verb: str, proxy: FaultProxy) -> None:
    transport = Transport(proxy.access(), limits=Limits(timeout=0.2))
    proxy.rule(calls(), Gate().stall)
    async with asyncio.timeout(5):
        with pytest.raises(TimedOutError, match="no answer in time"):
            await VERBS[verb](Client(transport))
    await transport.close()


async def test_case_28_a_write_without_an_answer_may_have_happened(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    await proxied.list(CONFIG_MAPS, Selection(namespace=namespace))
    lost = proxy.rule(lambda call: call.writes, commit_then_drop)
    with pytest.raises(NoAnswerError):
        await proxied.create(CONFIG_MAPS, settings(namespace, a="1"))
    made = await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert made["data"] == {"a": "1"}

    with pytest.raises(NoAnswerError):
        await proxied.patch(CONFIG_MAPS, "settings", {"data": {"a": "2"}}, namespace=namespace)
    with pytest.raises(NoAnswerError):
        await proxied.apply(CONFIG_MAPS, settings(namespace, b="3"), Write(force=True))
    changed = await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert changed["data"] == {"a": "2", "b": "3"}

    with pytest.raises(NoAnswerError):
        await proxied.replace(CONFIG_MAPS, changed | {"data": {}})
    exactly = Exactly(made["metadata"]["uid"])
    with pytest.raises(NoAnswerError):
        await proxied.delete(CONFIG_MAPS, "settings", exactly, namespace=namespace)
    lost.remove()
    with pytest.raises(NotFoundError):
        await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)
    methods = [call.method for call in proxy.asked(lambda call: call.writes)]
    assert methods == ["POST", "PATCH", "PATCH", "PUT", "DELETE"]


async def test_case_28_a_write_that_never_arrived_has_not_happened(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(calls("POST"), drop)
    with pytest.raises(NoAnswerError):
        await proxied.create(CONFIG_MAPS, settings(namespace))
    with pytest.raises(NotFoundError):
        await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)


@pytest.mark.parametrize("size", [0, 1, 40])
async def test_case_28_an_answer_that_ends_early_is_none(
    size: int, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    proxy.rule(calls("POST"), truncated(size))
    with pytest.raises(BrokenAnswerError):
        await proxied.create(CONFIG_MAPS, settings(namespace, a="1"))
    made = await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert made["data"] == {"a": "1"}


@pytest.mark.parametrize("code", [500, 503, 504])
async def test_case_27_a_server_error_is_neither_an_absence_nor_retried_blindly(
    code: int, proxy: FaultProxy, proxied: Client
) -> None:
    proxy.rule(calls("GET"), answer(code, "etcd is away"))
    for ask in (proxied.get(NAMESPACES, DEFAULT), proxied.list(NAMESPACES)):
        with pytest.raises(ServerError, match="etcd is away") as raised:
            await ask
        assert raised.value.code == code
    assert len(proxy.journal) == 2


async def test_nobody_there_is_unreachable_until_somebody_is(
    proxy: FaultProxy, proxied: Client
) -> None:
    await proxy.stop()
    with pytest.raises(UnreachableError, match=r"GET http://127.0.0.1:\d+/api/v1/namespaces"):
        await proxied.get(NAMESPACES, DEFAULT)
    await proxy.start()
    await proxied.get(NAMESPACES, DEFAULT)


async def test_a_server_of_another_authority_is_not_trusted(api: Api) -> None:
    endpoint = Endpoint(server=api.server, authority=Authority().certificate)
    transport = Transport(Access(endpoint=endpoint, credentials=Fixed()))
    with pytest.raises(UntrustedServerError, match="certificate"):
        await Client(transport).get(NAMESPACES, DEFAULT)
    await transport.close()


async def test_a_server_of_another_name_is_not_trusted(api: Api) -> None:
    authority = own_access(api.kubeconfig).endpoint.authority
    endpoint = Endpoint(server=api.server, authority=authority, server_name="other.example.com")
    transport = Transport(Access(endpoint=endpoint, credentials=Fixed()))
    with pytest.raises(UntrustedServerError, match=r"other\.example\.com"):
        await Client(transport).get(NAMESPACES, DEFAULT)
    await transport.close()


async def test_case_29_slow_calls_overlap_and_never_block_the_loop(
    proxy: FaultProxy, proxied: Client, record_property: Callable[[str, object], None]
) -> None:
    proxy.rule(calls("GET"), delayed(0.5))
    lags: list[float] = []

    async def measure() -> None:
        clock = asyncio.get_running_loop().time
        while True:
            before = clock()
            await asyncio.sleep(0.01)
            lags.append(clock() - before - 0.01)

    measuring = asyncio.create_task(measure())
    await asyncio.gather(*(proxied.get(NAMESPACES, DEFAULT) for _ in range(50)))
    measuring.cancel()
    record_property("median_lag_ms", statistics.median(lags) * 1000)
    record_property("worst_lag_ms", max(lags) * 1000)
    assert proxy.most_in_flight > 10


async def test_a_request_that_is_given_up_frees_its_place(proxy: FaultProxy) -> None:
    transport = Transport(proxy.access(), limits=Limits(in_flight=1))
    client = Client(transport)
    stalled = proxy.rule(calls("GET"), Gate().stall)
    for _ in range(3):
        asked = asyncio.create_task(client.get(NAMESPACES, DEFAULT))
        await eventually(lambda: proxy.in_flight == 1, "the request is under way")
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await eventually(lambda: proxy.in_flight == 0, "the request was given up")
    stalled.remove()
    async with asyncio.timeout(5):
        await client.get(NAMESPACES, DEFAULT)
    await transport.close()


async def test_an_error_names_no_secret(proxy: FaultProxy, proxied: Client) -> None:
    """What a request carries is not in the error that it ends with."""
    proxy.rule(calls("POST"), drop)
    with pytest.raises(KubeError) as raised:
        await proxied.create(CONFIG_MAPS, settings(DEFAULT, password="correct horse"))
    assert "correct horse" not in repr(raised.value) + repr(raised.value.__cause__)
