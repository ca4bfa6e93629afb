"""A control plane to measure against, an account that may use it, and processes that do.

For the other files here. A measured process says `ready`, waits for a line, works, and prints one
line of JSON with its figures: what it needs to get ready is nobody's cost.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pequod.dev.gomodule import GoModule, ensure_built
from pequod.dev.instances import State
from pequod.dev.layout import Layout
from pequod.kube.client import FIELD_MANAGER, Client
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, Kind
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Request, Transport

ROOT = Path(__file__).parents[1]
PEQUOD = (sys.executable, "-m", "pequod", "dev")
LOADER = GoModule(
    name="bench-loader",
    version="v1",
    packages=(("loader", "."),),
    folder=ROOT / "bench/loader",
)
MIB = 1024**2
IN_FLIGHT = 32
NAMESPACE = "bench"
NAME = "@NAME@"
"""Stands for an object's name in the bodies and paths of the loader."""
WARM = "warm"
"""An object that is read to open the connections."""
PATIENCE = 600.0

ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
ROLES = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")


class WrongError(Exception):
    """The world is not as the operations should have left it."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A control plane of this run's own."""

    layout: Layout

    @property
    def state(self) -> State:
        """Its state as of now."""
        return msgspec.json.decode((self.layout.root / "state.json").read_bytes(), type=State)

    def cpu(self) -> float:
        """Seconds of processor time that the API server and etcd have used."""
        components = self.state.components
        return sum(cpu_seconds(components[name].pid) for name in ("kube-apiserver", "etcd"))

    def pin(self, cores: set[int]) -> None:
        """Keep every component to some cores."""
        for process in self.state.components.values():
            pin(process.pid, cores)


@contextmanager
def control_plane(*options: str) -> Iterator[Plane]:
    """Start a control plane in a place of its own, and end it."""
    with tempfile.TemporaryDirectory() as state:
        environment = os.environ | {"PEQUOD_STATE_DIR": state}
        up = [*PEQUOD, "up", "--detach", "--node=none", *options]
        subprocess.run(up, check=True, capture_output=True, env=environment)
        try:
            yield Plane(Layout(Path(state) / "dev/default"))
        finally:
            down = [*PEQUOD, "down"]
            subprocess.run(down, check=True, capture_output=True, env=environment)


def pin(pid: int, cores: set[int]) -> None:
    """Keep a process to some cores."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def say(what: str) -> None:
    """Tell whoever waits what is going on; figures go elsewhere."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_cpu_seconds() -> float:
    """The same of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def memory(what: str, pid: int | str = "self") -> int:
    """A figure of a process's memory in bytes, as /proc/<pid>/status calls it."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith(f"{what}:"))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount that may do what is measured, and nothing else."""

    kubeconfig: Path
    server: str
    authority: Path
    token: Path


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client as a controller has it."""
    transport = Transport(own_access(kubeconfig))
    try:
        yield Client(transport)
    finally:
        await transport.close()


async def make_account(plane: Plane, admin: Client) -> Account:
    """Make the namespace, the account and its token: priority and fairness are for it as well."""
    place = {"name": NAMESPACE, "namespace": NAMESPACE}
    verbs = ["get", "list", "watch", "create", "patch"]
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}
    subject = {"kind": "ServiceAccount", **place}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": NAMESPACE}
    await admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await admin.create(ACCOUNTS, {"metadata": place})
    await admin.create(ROLES, {"metadata": place, "rules": [rule]})
    await admin.create(BINDINGS, {"metadata": place, "roleRef": role, "subjects": [subject]})
    await admin.create(CONFIG_MAPS, {"metadata": place | {"name": WARM}})
    path = f"{ACCOUNTS.path(namespace=NAMESPACE, name=NAMESPACE)}/token"
    headers = (("Content-Type", "application/json"),)
    answer = await admin.transport.send(
        Request(method="POST", path=path, body=b'{"spec":{}}', headers=headers)
    )
    token: str = msgspec.json.decode(answer)["status"]["token"]
    return _written(plane, token)


def _written(plane: Plane, token: str) -> Account:
    config, server = plane.layout.config, plane.state.server
    authority = plane.layout.pki / "ca.crt"
    account = Account(config / "bench.kubeconfig", server, authority, config / "bench.token")
    account.token.write_text(token)
    cluster = {"server": server, "certificate-authority": str(authority)}
    content = {
        "current-context": NAMESPACE,
        "contexts": [{"name": NAMESPACE, "context": {"cluster": NAMESPACE, "user": NAMESPACE}}],
        "clusters": [{"name": NAMESPACE, "cluster": cluster}],
        "users": [{"name": NAMESPACE, "user": {"token": token}}],
    }
    account.kubeconfig.write_bytes(msgspec.json.encode(content))
    return account


class Figures(msgspec.Struct, kw_only=True):
    """What one run took, as the process that did it says."""

    seconds: float
    cpu: float
    peak: int
    server: float = 0.0
    """Processor time of the API server and etcd; the parent's figure."""
    more: dict[str, float] = {}
    """Whatever else the process has to say."""


async def build_loader() -> Path:
    """The Go program, from the cache or built into it."""
    return await ensure_built(LOADER, lambda _: None) / "loader"


def loader_command(program: Path, account: Account, prefix: str, count: int) -> list[str]:
    """The command line of the loader, without what it is to do."""
    options = {
        "server": account.server,
        "ca": account.authority,
        "token": account.token,
        "warm": CONFIG_MAPS.path(namespace=NAMESPACE, name=WARM),
        "concurrency": IN_FLIGHT,
        "prefix": prefix,
        "count": count,
    }
    return [str(program), *(f"-{name}={value}" for name, value in options.items())]


def loader_apply(body: bytes, manager: str = FIELD_MANAGER, kind: Kind = CONFIG_MAPS) -> list[str]:
    """What makes the loader apply a body."""
    place = kind.path(namespace=NAMESPACE)
    return [
        "-method=PATCH",
        f"-path={place}/{NAME}?fieldManager={manager}&fieldValidation=Ignore",
        "-content-type=application/apply-patch+yaml",
        f"-body={body.decode()}",
    ]


def loader_delete(kind: Kind = CONFIG_MAPS) -> list[str]:
    """What makes the loader delete what it has applied."""
    return ["-method=DELETE", f"-path={kind.path(namespace=NAMESPACE)}/{NAME}"]


async def measured(
    command: Sequence[str], plane: Plane, meanwhile: Callable[[], Awaitable[object]] | None = None
) -> Figures:
    """Run a process that says when it is ready and works when it is let go."""
    async with _waiting(command) as process:
        before = plane.cpu()
        process.let_go()
        if meanwhile is not None:
            await meanwhile()
        figures = await process.figures()
        figures.server = plane.cpu() - before
        await process.end()
    return figures


async def one_after_the_other(commands: Sequence[Sequence[str]]) -> float:
    """Run several of them without a pause between two; the moment when the first was let go."""
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(_waiting(one)) for one in commands]
        began = time.perf_counter()
        for process in processes:
            process.let_go()
            await process.figures()
        for process in processes:
            await process.end()
    return began


@dataclass(slots=True)
class _Process:
    """A process that is ready, and waits to be let go."""

    name: str
    process: asyncio.subprocess.Process

    def let_go(self) -> None:
        assert self.process.stdin is not None, "asked for as a pipe"
        self.process.stdin.write(b"\n")

    async def figures(self) -> Figures:
        """What it says that it took."""
        assert self.process.stdout is not None, "asked for as a pipe"
        async with asyncio.timeout(PATIENCE):
            line = await self.process.stdout.readline()
        if not line:
            raise WrongError(f"{self.name} failed")
        return msgspec.json.decode(line, type=Figures)

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            if await self.process.wait() != 0:
                raise WrongError(f"{self.name} failed")


@asynccontextmanager
async def _waiting(command: Sequence[str]) -> AsyncIterator[_Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None, "asked for as a pipe"
    try:
        async with asyncio.timeout(PATIENCE):
            if await process.stdout.readline() != b"ready\n":
                await process.wait()
                raise WrongError(f"{command[0]} failed before it began")
        yield _Process(command[0], process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Stopwatch:
    """Wall clock and processor time of this process, from now on."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._used = _own_cpu()

    def figures(self, since: float | None = None) -> Figures:
        """What it took until now."""
        return Figures(
            seconds=time.perf_counter() - (self._began if since is None else since),
            cpu=_own_cpu() - self._used,
            peak=memory("VmHWM"),
        )


def _own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def released() -> None:
    """Let the parent look at its clocks before we begin."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
