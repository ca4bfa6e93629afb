"""The programs of a real OP Stack chain, built once from the Go module in `go/`."""

from dataclasses import dataclass
from pathlib import Path

from opstack.vendoring import ensure_built_vendored
from pequod.dev.builds import Report
from pequod.dev.gomodule import GoModule, ensure_built

VERSION = "v1.19.6"
_FOLDER = Path(__file__).with_name("go")
_OPTIMISM = "github.com/ethereum-optimism/optimism"

_MOST = GoModule(
    name="tests-opstack",
    version=VERSION,
    packages=(
        ("geth", "github.com/ethereum/go-ethereum/cmd/geth"),
        ("op-batcher", f"{_OPTIMISM}/op-batcher/cmd"),
        ("op-proposer", f"{_OPTIMISM}/op-proposer/cmd"),
        ("chainkit", "pequod.io/tests/opstack/chainkit"),
    ),
    folder=_FOLDER,
)
_OP_NODE = GoModule(
    name="tests-op-node",
    version=VERSION,
    packages=(("op-node", f"{_OPTIMISM}/op-node/cmd"),),
    folder=_FOLDER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpStackPrograms:
    """Where the programs are: static, so each alone makes an image."""

    geth: Path
    """op-geth, which is also the L1 of a test when it runs with `--dev`."""
    op_node: Path
    op_batcher: Path
    op_proposer: Path
    chainkit: Path
    """What tests need from the Ethereum libraries: see `go/chainkit/main.go`."""


async def opstack_programs(report: Report) -> OpStackPrograms:
    """The programs, from the cache if they are sound, built otherwise (minutes)."""
    most = await ensure_built(_MOST, report)
    return OpStackPrograms(
        geth=most / "geth",
        op_node=await ensure_built_vendored(_OP_NODE, report) / "op-node",
        op_batcher=most / "op-batcher",
        op_proposer=most / "op-proposer",
        chainkit=most / "chainkit",
    )
