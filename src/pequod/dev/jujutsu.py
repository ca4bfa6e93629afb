"""jj, for reading Jujutsu repositories: the one on PATH, or one built by cargo into the cache.

Cargo verifies each crate against the checksums of the lock file that the release comes with.
"""

import asyncio
import os
import platform
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pequod.dev.builds import Progress, Report, ensure_made
from pequod.dev.commands import environment
from pequod.dev.failure import DevError
from pequod.dev.places import cache_dir
from pequod.sources.errors import UnavailableError
from pequod.sources.jj.program import find_program

VERSION = "0.45.1"
_WHAT = f"Building jj {VERSION}"
_QUICKLY = {
    # A build without any optimisation takes half as long, but then each run takes five times as
    # long; what its authors optimise beyond this is for repositories that are larger than ours.
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_STRIP": "symbols",
}
_TALKATIVE = {
    "CARGO_TERM_COLOR": "never",
    "CARGO_TERM_PROGRESS_WHEN": "always",
    "CARGO_TERM_PROGRESS_WIDTH": "100",
}
_STEP = re.compile(r"\[[=> ]*\] (\d+)/(\d+): (.*)")
_NO_CARGO = (
    "Install Rust 1.89 or newer (https://rustup.rs, or the Debian packages cargo and rustc where "
    "they are new enough), or put jj 0.45 or newer on PATH."
)


def cached_folder() -> Path:
    """Where the built program is kept."""
    system = f"{platform.system().lower()}-{platform.machine()}"
    return cache_dir() / f"jj-{VERSION}-{system}"


async def find_jujutsu() -> Path:
    """The program that is there; DevError where `make tools` has to be run first."""
    try:
        return await find_program(cached_folder())
    except UnavailableError as error:
        raise DevError(
            error.problem, next_step="Run `make tools`, which builds it, or put it on PATH."
        ) from None


async def ensure_jujutsu(report: Report) -> Path:
    """The program: from PATH, from the cache, or built now."""
    try:
        return await find_program(cached_folder())
    except UnavailableError:
        folder = cached_folder()
    if shutil.which("cargo") is None:
        raise DevError(f"jj {VERSION} must be built and there is no cargo", next_step=_NO_CARGO)

    async def make(workshop: Path) -> None:
        report(Progress(_WHAT, detail="fetching its crates"))
        with TemporaryDirectory(dir=workshop) as scratch:
            async for done, total, detail in _cargo(Path(scratch)):
                report(Progress(_WHAT, done=done, total=total, detail=detail))
            (Path(scratch) / "root" / "bin" / "jj").rename(workshop / "jj")
        report(Progress(_WHAT, done=1, total=1, detail="done"))

    return await ensure_made(folder, ["jj"], make=make, report=report) / "jj"


async def _cargo(workshop: Path) -> AsyncIterator[tuple[int, int, str]]:
    """Let cargo install the program below a folder, and yield how far it is."""
    process = await asyncio.create_subprocess_exec(
        *("cargo", "install", "--locked", "--no-default-features", "--features=git", "--bin=jj"),
        *(f"--root={workshop / 'root'}", f"jj-cli@{VERSION}"),
        cwd=workshop,
        env=environment() | _QUICKLY | _TALKATIVE | {"CARGO_TARGET_DIR": str(workshop / "target")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # A group of its own, so that the compilers end with it.
        start_new_session=True,
    )
    assert process.stderr is not None, "asked for as a pipe"
    said: list[str] = []
    try:
        async for line in _lines(process.stderr):
            if step := _STEP.search(line):
                yield int(step[1]), int(step[2]), step[3]
            elif line:
                said = [*said[-7:], line]
    finally:
        if not process.stderr.at_eof():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
    if code != 0:
        raise DevError(f"building jj {VERSION} failed:\n" + "\n".join(said), next_step=_NO_CARGO)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """What is printed, line by line, also when a line is meant to cover the one before."""
    rest = ""
    while piece := await stream.read(2**14):
        *lines, rest = re.split(r"[\r\n]+", rest + piece.decode(errors="replace"))
        for line in lines:
            yield line.strip()
    yield rest.strip()
