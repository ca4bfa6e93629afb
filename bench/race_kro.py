"""The same work done by kro and by Pequod, at the same API server, one after the other, counted.

Many instances of ten nodes are made until all are Ready, some of their objects are changed by
somebody else, and everything is deleted: by kro from one ResourceGraphDefinition, and by Pequod
from one CUE module and as many Transforms. They take turns, and only one of them runs at a time.
Every object is checked. Run it with `python -m bench.race_kro`; `racekro.py` and `racepequod.py`
say how each of them is run, `racetable.py` what we want.

Requests are those that the API server has counted: of the contender by a FlowSchema of its own
(its watches and its Lease included), of everybody by its request counter without watches. What an
idle control plane uses is subtracted from all figures.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.plane import Plane, WrongError, connected, control_plane, say
from bench.racekro import VERSION, Kro
from bench.raceleg import Figures, Leg
from bench.raceload import NODES
from bench.racemeter import Meter, Used
from bench.racepequod import Pequod
from bench.racetable import requests, shown
from bench.racing import Contender, Stage

IDLE = 15.0
"""Seconds for which the control plane is looked at while nobody runs."""


async def _race(plane: Plane, options: argparse.Namespace) -> None:
    everybody: list[Contender] = [
        Kro(workers=options.workers, requeue=options.requeue),
        Pequod(policies=options.policies, source=options.module, store=plane.layout.root / "store"),
    ]
    contenders = [one for one in everybody if options.only in {None, one.name}]
    turns = [
        (one, f"race-{one.name}-{number}")
        for number in range(1, options.rounds + 1)
        for one in contenders
    ]
    figures: dict[str, list[Figures]] = {one.name: [] for one in contenders}
    async with connected(plane.layout.kubeconfig) as admin:
        stage = await Stage.on(plane, admin, Path(options.logs))
        say("installing both; kro is built first if it is not in the cache, which takes minutes")
        for one in contenders:
            await one.install(stage)
        await stage.count([one.account for one in contenders], [place for _, place in turns])
        idle = await _idle(stage)
        for contender, namespace in turns:
            leg = Leg(
                stage=stage,
                contender=contender,
                namespace=namespace,
                idle=idle,
                instances=options.instances,
                edits=options.edits,
            )
            found = await leg.run()
            figures[contender.name].append(found)
            say(
                f"{namespace}: created in {found.created.seconds:.2f} s, deleted in "
                f"{found.deleted.seconds:.2f} s"
            )
    print(shown(figures, instances=options.instances, nodes=NODES), flush=True)
    if options.requests:
        print(requests(figures, objects=options.instances * NODES), flush=True)


async def _idle(stage: Stage) -> Used:
    """What is used in a while in which nobody asks for anything."""
    meter = Meter(stage.plane, stage.admin)
    await meter.settled("before the race")
    say(f"the idle control plane, {IDLE:.0f} s")
    before = await meter.now()
    await asyncio.sleep(IDLE)
    used = await meter.since(before)
    if used.own:
        raise WrongError("a contender asks for something while it should not run")
    return used


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=100, help="of ten nodes each")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each contender")
    parser.add_argument("--edits", type=int, default=20, help="objects changed by somebody else")
    parser.add_argument("--only", choices=("kro", "pequod"), help="one contender without the other")
    parser.add_argument("--workers", type=int, default=20, help="of kro")
    parser.add_argument(
        "--requeue", default="3s", help="kro's delay between passes; it deletes faster with 1s"
    )
    parser.add_argument("--policies", default="embedded:policy", help="of Pequod, or off")
    parser.add_argument("--module", choices=("inline", "configmap"), default="inline")
    parser.add_argument("--logs", default=_logs(), help="folder for the contenders' logs")
    parser.add_argument("--requests", action="store_true", help="list them by verb and resource")
    parser.add_argument("--shared", action="store_true", help="let everybody use every core")
    return parser.parse_args()


def _logs() -> str:
    return str(Path(tempfile.gettempdir()) / f"race-kro-{time.strftime('%H%M%S')}")


def main() -> None:
    """Race, and print the table; only wrong results are a failure."""
    options = _options()
    first, *others = sorted(os.sched_getaffinity(0))
    cores = set(others) if others and not options.shared else None
    Path(options.logs).mkdir(parents=True, exist_ok=True)
    say("starting a control plane")
    try:
        with control_plane("--crds") as plane:
            if cores:
                plane.pin({first})
                os.sched_setaffinity(0, cores)
            where = "server and controllers on one core, contender and client on the others"
            print(where if cores else "all share all cores")
            print(f"kro {VERSION}: no client limits, {options.workers} workers, ", end="")
            print(f"{options.requeue} between passes that nothing has asked for")
            print(f"pequod: policies {options.policies}, modules {options.module}")
            print(f"logs in {options.logs}", flush=True)
            asyncio.run(_race(plane, options))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
