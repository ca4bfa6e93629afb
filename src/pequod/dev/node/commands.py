"""Running the system's own programs, one at a time, and believing their exit codes."""

import asyncio
import subprocess

from pequod.dev.failure import DevError

_TIMEOUT = 60.0


async def run(*command: str, stdin: bytes = b"") -> str:
    """Run a program to its end and return what it printed."""
    code, output = await attempt(*command, stdin=stdin)
    if code != 0:
        raise DevError(
            f"`{' '.join(command)}` failed: {output.strip()}",
            next_step="Is this machine allowed to make namespaces and network devices?",
        )
    return output


async def attempt(*command: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a program to its end; the caller decides what its exit code means."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_TIMEOUT):
            output, _ = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None, "communicate waits for the end"
    return process.returncode, output.decode(errors="replace")


def attempt_now(*command: str) -> int:
    """Run a program to its end without an event loop: for cleaning up after others."""
    return subprocess.run(command, check=False, capture_output=True, timeout=_TIMEOUT).returncode
