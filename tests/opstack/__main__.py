"""Build what the tests of real chains run, where they are run at all: minutes, once."""

import asyncio
import os
import sys

from opstack.programs import opstack_programs
from pequod.dev.node.packages import obstacle


def main() -> None:
    """Build everything that is not in the cache."""
    if obstacle() is None or "CI" in os.environ:
        asyncio.run(opstack_programs(lambda line: print(line, file=sys.stderr)))  # noqa: T201


main()
