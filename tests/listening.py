"""Servers that live in the event loop of a test, and leave nothing open behind."""

import asyncio
import socket


def listener(port: int = 0) -> socket.socket:
    """A socket on the loopback that accepts connections."""
    return socket.create_server(("127.0.0.1", port))


async def accept_no_more(listening: socket.socket) -> None:
    """Let what was accepted become a connection: asyncio leaks what a closed server is handed."""
    if listening.fileno() < 0:
        return
    asyncio.get_running_loop().remove_reader(listening)
    for _ in range(3):
        await asyncio.sleep(0)
