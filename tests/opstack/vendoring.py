"""Go programs that use a package of Optimism whose module lacks a generated file.

`op-core/superchain` embeds an archive of the chains that it knows, and the archive is not in the
module. A module in Go's own cache cannot be mended, a vendored copy of it can.
"""

import asyncio
import hashlib
import io
import shutil
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pequod.dev.builds import Progress, Report, ensure_made
from pequod.dev.commands import environment
from pequod.dev.failure import DevError
from pequod.dev.gomodule import GoModule
from pequod.dev.places import cache_dir

BUILD_LIMIT = 1800.0
_SUPERCHAIN = "vendor/github.com/ethereum-optimism/optimism/op-core/superchain"
_ARCHIVE = "superchain-configs.zip"


async def ensure_built_vendored(module: GoModule, report: Report) -> Path:
    """The folder with the module's programs: from the cache if it is sound, built otherwise."""

    async def make(workshop: Path) -> None:
        source = workshop / "source"
        await asyncio.to_thread(shutil.copytree, module.source, source)
        await _vendor(source, report, f"Vendoring {module.name} {module.version}")
        for program, package in module.packages:
            build = ("-mod=vendor", "-v", "-trimpath", f"-ldflags={module.linker_flags}")
            what = f"Building {program} {module.version}"
            await _go(source, report, what, "build", *build, f"-o={workshop / program}", package)
        await asyncio.to_thread(shutil.rmtree, source)

    programs = [program for program, _ in module.packages]
    return await ensure_made(cache_dir() / module.key(), programs, make=make, report=report)


async def _vendor(source: Path, report: Report, what: str) -> None:
    """Copy what is built below `source`, and add the archive with no chain in it.

    `-e` goes on where the archive is missing; anything else that is missing ends the build.
    """
    await _go(source, report, what, "mod", "vendor", "-e")
    archive = _archive_of_no_chains()
    folder = source / _SUPERCHAIN
    (folder / _ARCHIVE).write_bytes(archive)
    digest = hashlib.sha256(archive).hexdigest()
    (folder / f"{_ARCHIVE}.sha256").write_text(f"{digest}  {_ARCHIVE}\n")


def _archive_of_no_chains() -> bytes:
    """The archive is always the same, so that programs built from it are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (("dictionary", ""), ("chains.json", "{}")):
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


async def _go(source: Path, report: Report, what: str, *arguments: str) -> None:
    """Run the Go tool to its end, and report each line that it prints."""
    said: list[str] = []
    report(Progress(what))
    async with asyncio.timeout(BUILD_LIMIT), _running_go(source, *arguments) as process:
        assert process.stdout is not None, "asked for as a pipe"
        async for raw in process.stdout:
            said.append(raw.decode(errors="replace").rstrip())
            report(Progress(what, detail=said[-1]))
        code = await process.wait()
    if code != 0:
        text = "\n".join(said[-8:])
        raise DevError(
            f"`go {arguments[0]}` failed:\n{text}",
            next_step="Is the network away, or the disk full? Otherwise see tests/opstack/go.",
        )


@asynccontextmanager
async def _running_go(source: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        "go",
        *arguments,
        cwd=source,
        env=environment() | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
