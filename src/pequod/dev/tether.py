"""Become another program that the kernel kills as soon as our parent dies.

Run as a script (`python -I -S tether.py <parent pid> <command> …`): a supervisor that is killed
with SIGKILL can clean nothing up itself. Standard library only, so that it starts in milliseconds.
"""

import ctypes
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> NoReturn:
    """Tie this process to its parent and become the command."""
    parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != int(parent):
        # The parent died before the signal was asked for: nobody is left to send it.
        raise SystemExit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
