"""Running chainkit, the one program of ours among the chain's: see `go/chainkit/main.go`."""

from opstack.programs import OpStackPrograms
from pequod.dev.commands import attempt


class ChainkitError(Exception):
    """What chainkit could not do."""


async def chainkit(
    programs: OpStackPrograms, *arguments: str, stdin: bytes = b"", key: str = ""
) -> str:
    """What chainkit answers; `key` signs what it sends."""
    done = await attempt(
        str(programs.chainkit), *arguments, stdin=stdin, variables={"CHAINKIT_KEY": key}
    )
    if done.code != 0:
        raise ChainkitError(f"chainkit {arguments[0]}: {done.errors.strip()}")
    return done.output.strip()
