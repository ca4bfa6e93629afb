"""Go programs of ours.

A build is named by everything that decides its content, so a second checkout builds nothing.
"""

import asyncio
import hashlib
import platform
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pequod.dev.builds import Progress, Report, ensure_made
from pequod.dev.commands import environment, run
from pequod.dev.failure import DevError
from pequod.dev.places import cache_dir, shipped

MINIMUM_GO = (1, 26)


@dataclass(frozen=True)
class GoModule:
    """A Go module, by default one below `go/`, and the programs that its packages become."""

    name: str
    version: str
    packages: tuple[tuple[str, str], ...]
    """Program name and package path."""
    linker_flags: str = "-s -w"
    folder: Path | None = None
    """The module's folder, where it is not one that we ship."""

    @property
    def source(self) -> Path:
        """The module's folder."""
        return self.folder or shipped(f"go/{self.name}")

    def key(self) -> str:
        """Name of the build in the cache: readable version first, then what makes it exact."""
        digest = hashlib.sha256()
        for path in sorted(self.source.rglob("*")):
            if path.suffix in {".go", ".mod", ".sum"}:
                digest.update(f"{path.relative_to(self.source)}\0".encode())
                digest.update(path.read_bytes())
        digest.update(self.linker_flags.encode())
        system = f"{platform.system().lower()}-{platform.machine()}"
        return f"{self.name}-{self.version}-{system}-{digest.hexdigest()[:12]}"


async def ensure_built(module: GoModule, report: Report) -> Path:
    """The folder with the module's programs: from the cache if it is sound, built otherwise."""

    async def make(workshop: Path) -> None:
        await _require_go(module)
        for program, package in module.packages:
            await _compile(module, package, workshop / program, report)

    programs = [program for program, _ in module.packages]
    return await ensure_made(cache_dir() / module.key(), programs, make=make, report=report)


async def _require_go(module: GoModule) -> None:
    hint = (
        f"Install Go {MINIMUM_GO[0]}.{MINIMUM_GO[1]} or newer, or set KUBEBUILDER_ASSETS to a "
        "folder with the programs."
    )
    if shutil.which("go") is None:
        raise DevError(f"{module.name} must be built and there is no Go toolchain", next_step=hint)
    output = await run("go", "env", "GOVERSION", next_step=hint)
    found = re.match(r"go(\d+)\.(\d+)", output)
    if found is None or (int(found[1]), int(found[2])) < MINIMUM_GO:
        raise DevError(
            f"{module.name} needs Go {MINIMUM_GO[0]}.{MINIMUM_GO[1]} and this is {output.strip()}",
            next_step=hint,
        )


async def _compile(module: GoModule, package: str, program: Path, report: Report) -> None:
    what = f"Building {program.name} {module.version}"
    report(Progress(what, detail="resolving packages"))
    listed = [line async for line in _go(module, report, what, "list", "-deps", package)]
    total, done = len(listed), 0
    build = ("build", "-v", "-trimpath", "-ldflags", module.linker_flags, "-o", str(program))
    async for line in _go(module, report, what, *build, package):
        done += 1
        report(Progress(what, done=min(done, total), total=total, detail=line))
    report(Progress(what, done=total, total=total, detail="done"))


async def _go(module: GoModule, report: Report, what: str, *arguments: str) -> AsyncIterator[str]:
    """Run the Go tool and yield what it prints, without its word on downloads."""
    process = await asyncio.create_subprocess_exec(
        "go",
        *arguments,
        cwd=module.source,
        env=environment() | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None, "asked for as a pipe"
    said: list[str] = []
    try:
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            said.append(line)
            if line.startswith("go: downloading "):
                report(Progress(what, detail=line.removeprefix("go: ")))
            else:
                yield line
    finally:
        if not process.stdout.at_eof():
            process.kill()
        code = await process.wait()
    if code != 0:
        raise _build_error(module, said)


def _build_error(module: GoModule, said: list[str]) -> DevError:
    text = "\n".join(said[-8:])
    if "no space left on device" in text:
        step = "Free some space: Go's build cache is at `go env GOCACHE`."
    else:
        step = f"Run `go build ./...` in {module.source} to see the whole output."
    return DevError(f"building {module.name} failed:\n{text}", next_step=step)
