"""What the operator costs while nothing happens: memory, processor time, requests.

A control plane with an operator of its own, left alone for a while. Run it with
`python -m bench.idle`.
"""

import argparse
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.plane import MIB, Plane, WrongError, control_plane, cpu_seconds, memory
from prometheus_client.parser import text_string_to_metric_families

SETTLING = 15.0
"""Seconds after which the operator has nothing left to do from its start."""
MEMORY = 100 * MIB
CPU = 0.01
EXPECTED = {("watch", ""), ("update", "leases.coordination.k8s.io")}
"""Verbs and resources of an idle operator; no resource means any."""

Requests = Counter[tuple[str, str, str]]
"""How many there were, by verb, resource and code."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The process of an operator, and where it tells of itself."""

    pid: int
    metrics: str

    @classmethod
    def of(cls, plane: Plane) -> "Operator":
        """The operator of a control plane."""
        pid = plane.state.components["operator"].pid
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        (address,) = (word for word in words if word.startswith("--metrics-address="))
        return cls(pid, f"http://{address.partition('=')[2]}/metrics")

    def requests(self) -> Requests:
        """Every request that it has made so far."""
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            families = [*text_string_to_metric_families(answer.read().decode())]
        found: Requests = Counter()
        for family in families:
            if family.name == "pequod_api_requests":
                for sample in family.samples:
                    labels = sample.labels
                    key = labels["verb"], labels["resource"], labels["code"]
                    found[key] += int(sample.value)
        if not found:
            raise WrongError(f"{self.metrics} tells of no requests")
        return found

    def proportional(self) -> int:
        """Its own memory and its share of what it has in common with others."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
        return int(line.split()[1]) * 1024


def _idle(operator: Operator, seconds: float) -> tuple[float, Requests]:
    """The share of a core, and the requests, of a while without anything to do."""
    time.sleep(SETTLING)
    before = operator.requests()
    used, began = cpu_seconds(operator.pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(operator.pid) - used) / (time.monotonic() - began)
    return share, operator.requests() - before


def _expected(verb: str, resource: str) -> bool:
    return (verb, "") in EXPECTED or (verb, resource) in EXPECTED


def _word(reached: bool) -> str:  # noqa: FBT001 -- a word for a boolean
    return "yes" if reached else "no"


def main() -> None:
    """Watch an operator do nothing, and print what that takes."""
    parser = argparse.ArgumentParser(description="What the operator costs while it is idle.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is watched")
    options = parser.parse_args()
    with control_plane("--operator") as plane:
        operator = Operator.of(plane)
        share, requests = _idle(operator, options.seconds)
        resident, proportional = memory("VmRSS", operator.pid), operator.proportional()
        peak = memory("VmHWM", operator.pid)
        if plane.state.components["operator"].pid != operator.pid:
            raise WrongError("the operator did not live through the measurement")
    quiet = all(_expected(verb, resource) for verb, resource, _ in requests)
    print(f"{'operator, idle for':20} {options.seconds:.0f} s")
    print(f"{'RSS, MiB':20} {resident / MIB:7.1f}  goal < 100: {_word(resident < MEMORY)}")
    print(f"{'PSS, MiB':20} {proportional / MIB:7.1f}")
    print(f"{'peak RSS, MiB':20} {peak / MIB:7.1f}")
    print(f"{'CPU of a core':20} {share:7.2%}  goal < 1 %: {_word(share < CPU)}")
    print(f"requests; goal: watches and the lease only: {_word(quiet)}")
    for (verb, resource, code), number in sorted(requests.items()):
        print(f"  {verb:8} {resource:32} {code:5} {number:5} {number / options.seconds:6.2f}/s")


if __name__ == "__main__":
    main()
