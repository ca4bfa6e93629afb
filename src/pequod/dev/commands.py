"""Running other programs to their end: with a limit and without a shell."""

import asyncio
import os
import subprocess
from dataclasses import dataclass

from pequod.dev.failure import DevError

TIMEOUT = 60.0
_ADMINISTRATORS_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path() -> str:
    """Where programs are looked for: also where only an administrator's PATH would."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *_ADMINISTRATORS_PATH))


def environment() -> dict[str, str]:
    """The environment that programs are run with."""
    return os.environ | {"PATH": search_path()}


@dataclass(frozen=True)
class Result:
    """How a program ended, and what it printed."""

    code: int
    output: str
    errors: str


async def attempt(
    *command: str,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,  # noqa: ASYNC109 -- the limit and its message belong together
    variables: dict[str, str] | None = None,
) -> Result:
    """Run a program to its end; the caller decides what its exit code means."""
    process = await _start(command, environment() | (variables or {}))
    try:
        async with asyncio.timeout(timeout):
            output, errors = await process.communicate(stdin)
    except TimeoutError as error:
        raise DevError(
            f"`{' '.join(command)}` did not end within {timeout:.0f} s",
            next_step="Is the machine very busy, or the network away? Try again.",
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None, "communicate waits for the end"
    return Result(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


async def _start(command: tuple[str, ...], variables: dict[str, str]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
        )
    except FileNotFoundError as error:
        raise DevError(
            f"the program {command[0]} is not installed", next_step=f"Install {command[0]}."
        ) from error


async def run(*command: str, next_step: str) -> str:
    """Run a program that must succeed, and return what it printed."""
    result = await attempt(*command)
    if result.code != 0:
        said = (result.errors or result.output).strip()
        raise DevError(f"`{' '.join(command)}` failed: {said}", next_step=next_step)
    return result.output


def attempt_now(*command: str) -> Result:
    """Run a program to its end without an event loop: for cleaning up after others."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=TIMEOUT, env=environment()
    )
    return Result(done.returncode, done.stdout, done.stderr)
