"""Modules that are elsewhere: fetched into the user's own cache, and pushed from there."""

from contextlib import AsyncExitStack
from pathlib import Path

from pequod.cli.moduleplace import Place
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import Credentials


async def fetch(stack: AsyncExitStack, place: Place, credentials: Credentials) -> Artifact:
    raise NotImplementedError


async def push_module(
    stack: AsyncExitStack, folder: Path, reference: str, credentials: Credentials
) -> str:
    raise NotImplementedError
