"""A bad Transform, module or source is nobody else's problem."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from doubles.gitserver import GitServer
from transforms import MAPS, StartPlatform, Transforms
from waiting import until

MANY = 60
BOMB = MAPS.replace(
    "graph: {",
    "_grown: [for a in _ten for b in _ten for c in _ten for d in _ten for e in _ten for f in _ten "
    "for g in _ten for h in _ten {a + b + c + d + e + f + g + h}]\n"
    "_ten: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    "graph: {\n\tif len(_grown) == 0 {never: true}",
    1,
)
"""A module that would take all the memory and time that there is."""


@pytest.fixture
async def silent(tmp_path: Path) -> AsyncIterator[GitServer]:
    """A server that takes requests and never answers."""
    server = GitServer(tmp_path / "served")
    await server.start()
    server.behaviour = server.stall
    yield server
    await server.stop()


async def test_many_become_ready_beside_a_bomb_a_silent_source_and_a_wrong_input(
    transforms: Transforms, platform: StartPlatform, silent: GitServer
) -> None:
    url = f"https://127.0.0.1:{silent.port}/app.git?ref=main"
    transforms.ask("bomb", {"value": "a"}, cueRef={"type": "inline", "ref": BOMB})
    transforms.ask("silent", {"value": "a"}, cueRef={"type": "git", "ref": url})
    transforms.ask("wrong", {"value": 7})
    names = [f"web-{number:03}" for number in range(MANY)]
    for name in names:
        transforms.ask(name, {"value": name})
    async with platform():
        for name in names:
            await until(partial(transforms.is_done, name))
        await until(partial(transforms.because, "wrong", "Violated"))
        await until(lambda: transforms.says("bomb").get("reason") == "EvaluationLimit")
        assert transforms.says("silent")["status"] == "False"
    assert transforms.value("web-007-0") == "web-007"
    assert not transforms.exists("transform-bomb")
