"""Where the pages are, and what they say."""

import asyncio
import socket
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from pequod.runtime.health import (
    Address,
    PortTakenError,
    UnhealthyError,
    health_app,
    metrics_app,
    serving,
)


def fetched(address: Address, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def fine() -> str:
    return "ok"


async def broken() -> str:
    raise UnhealthyError("the watch of Cluster is stuck")


async def silent() -> str:
    await asyncio.Event().wait()
    return "never"


LOCAL = Address("127.0.0.1", 0)


async def test_a_page_lists_its_checks_and_fails_with_one_of_them() -> None:
    app = health_app({"a": fine, "b": broken}, {"a": fine})
    async with serving(app, LOCAL) as address:
        assert await asyncio.to_thread(fetched, address, "/healthz") == (
            503,
            "[+]a ok\n[-]b the watch of Cluster is stuck\n",
        )
        assert await asyncio.to_thread(fetched, address, "/readyz") == (200, "[+]a ok\n")


async def test_a_check_that_does_not_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pequod.runtime.health._CHECK_LIMIT", 0.01)
    async with serving(health_app({"slow": silent}, {}), LOCAL) as address:
        code, text = await asyncio.to_thread(fetched, address, "/livez")
    assert code == 503
    assert "no answer" in text


async def test_metrics_are_served_as_text() -> None:
    async with serving(metrics_app(), LOCAL) as address:
        code, text = await asyncio.to_thread(fetched, address, "/metrics")
    assert code == 200
    assert "process_resident_memory_bytes" in text


async def test_a_port_that_is_taken_is_named() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(PortTakenError, match=str(address)):
            async with serving(metrics_app(), address):
                raise AssertionError("served on a port of somebody else")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:80", "127.0.0.1", 80), (":8081", "", 8081), ("[::1]:1", "::1", 1)],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "80", "a:b", ":65536", "a:", ":-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Address.parse(text)
