"""Tests on a real node: one for all of them, with the program of the test pods in its registry."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from instances import Foreground, foreground
from pequod.dev.node.configuration import LOCAL_REGISTRY
from pequod.dev.node.images import write_image

IMAGE = f"{LOCAL_REGISTRY}/program:1"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static program that the test pods run, built from `program/`."""
    built = tmp_path_factory.mktemp("program") / "program"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags=-s -w", f"-o={built}", "."],
        check=True,
        cwd=Path(__file__).with_name("program"),
        env=os.environ | {"CGO_ENABLED": "0"},
    )
    return built


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreground]:
    """A control plane with a real node."""
    state = tmp_path_factory.mktemp("real") / "state"
    with foreground(state, "up", "--node=real", "--crds") as plane:
        plane.wait_until_ready()
        yield plane


@pytest.fixture(scope="session")
def image(node: Foreground, program: Path) -> str:
    """An image that was made here, pushed to the local registry, and is nowhere else."""
    write_image(node.root / "node/program.tar", name=IMAGE, program=program)
    ctr = ("ctr", "--namespace=k8s.io", "images")
    node.execute(*ctr, "import", "/var/lib/pequod/node/program.tar")
    node.execute(*ctr, "push", "--hosts-dir=/var/lib/pequod/node/registries", IMAGE)
    node.execute(*ctr, "remove", "--sync", IMAGE)
    return IMAGE
