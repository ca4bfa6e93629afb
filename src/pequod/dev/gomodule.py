"""Go programs of ours, built once and kept outside the work tree.

A build is named by everything that decides its content, so a second checkout builds nothing; it is
put into the cache by one rename, so one that was cut short is never taken for a whole one.
"""

import asyncio
import fcntl
import hashlib
import platform
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pequod.dev.commands import environment, run
from pequod.dev.failure import DevError
from pequod.dev.places import cache_dir, shipped

MINIMUM_GO = (1, 26)
SPACE_FOR_A_BUILD = 6 * 1024**3
"""What a cold build needs at its peak: module sources, Go's own build cache, the programs."""


@dataclass(frozen=True)
class Progress:
    """How far a build has come, for whoever shows it."""

    what: str
    done: int = 0
    total: int = 0
    detail: str = ""


Report = Callable[[Progress], None]


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


class Manifest(msgspec.Struct, frozen=True):
    """What a finished build consists of: the SHA-256 of each program."""

    programs: dict[str, str]


_MANIFEST = "manifest.json"


async def ensure_built(module: GoModule, report: Report) -> Path:
    """The folder with the module's programs: from the cache if it is sound, built otherwise."""
    folder = cache_dir() / module.key()
    if await asyncio.to_thread(_is_sound, folder):
        return folder
    _require_writable(folder.parent, module)
    async with _build_lock(folder, report):
        if not await asyncio.to_thread(_is_sound, folder):
            await _build(module, folder, report)
    return folder


def _is_sound(folder: Path) -> bool:
    """Whether a build is complete and unharmed."""
    try:
        manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=Manifest)
        return all(_sha256(folder / name) == wanted for name, wanted in manifest.programs.items())
    except (OSError, msgspec.DecodeError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _require_writable(cache: Path, module: GoModule) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError as error:
        raise DevError(
            f"{module.name} is not in the cache and {cache} cannot be written: {error.strerror}",
            next_step="Set PEQUOD_CACHE_DIR to a folder that you may write to.",
        ) from error
    free = shutil.disk_usage(cache).free
    if free < SPACE_FOR_A_BUILD:
        raise DevError(
            f"building {module.name} needs about {SPACE_FOR_A_BUILD // 1024**3} GiB and {cache} "
            f"has {free / 1024**3:.1f} GiB free",
            next_step="Free some space, or set PEQUOD_CACHE_DIR to a folder on a larger disk.",
        )


@asynccontextmanager
async def _build_lock(folder: Path, report: Report) -> AsyncIterator[None]:
    """One build of a module at a time on this machine; the others wait for its result."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        while not _locked(lock.fileno()):
            report(Progress(f"Waiting for another build of {folder.name}"))
            await asyncio.sleep(0.5)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _build(module: GoModule, folder: Path, report: Report) -> None:
    await _require_go(module)
    workshop = await asyncio.to_thread(_empty_workshop, folder)
    try:
        for program, package in module.packages:
            await _compile(module, package, workshop / program, report)
        await asyncio.to_thread(_publish, module, workshop, folder)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _empty_workshop(folder: Path) -> Path:
    """A folder beside the final one, once everything that failed or rotted there is gone."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(leftover)
    shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))


def _publish(module: GoModule, workshop: Path, folder: Path) -> None:
    """Seal a finished build and put it into its place."""
    programs = {program: _sha256(workshop / program) for program, _ in module.packages}
    (workshop / _MANIFEST).write_bytes(msgspec.json.encode(Manifest(programs)))
    workshop.chmod(0o755)
    workshop.rename(folder)


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
