"""Forks of a rollup: both files must know the same ones, at the same times, in order. Pure."""

from dataclasses import dataclass

from pequod.controllers.rollup.findings import Document


@dataclass(frozen=True, slots=True)
class Fork:
    """One upgrade of the protocol, as each file calls it."""

    rollup: str
    genesis: str | None = None
    """Delta, for one, concerns derivation only."""
    ethereum: str | None = None
    """The fork of Ethereum that comes with it."""
    ordered: bool = True
    """Whether every fork before it must be set: devnets try newer ones by themselves."""


FORKS = (
    Fork("regolith_time", "regolithTime"),
    Fork("canyon_time", "canyonTime", "shanghaiTime"),
    Fork("delta_time"),
    Fork("ecotone_time", "ecotoneTime", "cancunTime"),
    Fork("fjord_time", "fjordTime"),
    Fork("granite_time", "graniteTime"),
    Fork("holocene_time", "holoceneTime"),
    Fork("isthmus_time", "isthmusTime", "pragueTime"),
    Fork("jovian_time", "jovianTime"),
    Fork("karst_time", "karstTime", ordered=False),
    Fork("lagoon_time", "lagoonTime", ordered=False),
)
"""In the order in which they come."""


def fork_times(rollup: Document) -> dict[str, int]:
    """When each fork comes that is set."""
    times = {fork.rollup: rollup.find(f".{fork.rollup}") for fork in FORKS}
    return {name: time for name, time in times.items() if isinstance(time, int)}


def check_forks(genesis: Document | None, rollup: Document | None) -> None:
    """Find forks that are out of order, or that the files do not agree on."""
    if rollup is not None:
        _check_order(rollup)
    if genesis is not None:
        _check_ethereum(genesis)
    if genesis is not None and rollup is not None:
        _check_agreement(genesis, rollup)


def _check_order(rollup: Document) -> None:
    before: tuple[str, int] | None = None
    missing = ""
    for fork in FORKS:
        time = rollup.number(f".{fork.rollup}", required=False)
        if rollup.is_wrong(f".{fork.rollup}"):
            continue
        if time is None:
            missing = missing or fork.rollup
            continue
        if missing and fork.ordered:
            rollup.wrong(f".{fork.rollup}", f"is set, but {missing}, which comes before, is not")
            missing = ""
        if before is not None and time < before[1]:
            rollup.wrong(f".{fork.rollup}", f"is {time}, before {before[0]}, which is {before[1]}")
        before = (fork.rollup, time)


def _check_ethereum(genesis: Document) -> None:
    for fork in FORKS:
        if fork.genesis is None or fork.ethereum is None:
            continue
        ours = genesis.number(f".config.{fork.genesis}", required=False)
        theirs = genesis.number(f".config.{fork.ethereum}", required=False)
        if any(genesis.is_wrong(f".config.{name}") for name in (fork.genesis, fork.ethereum)):
            continue
        if ours != theirs:
            genesis.wrong(
                f".config.{fork.ethereum}",
                f"is {_said(theirs)}, but {fork.genesis}, which it comes with, is {_said(ours)}",
            )


def _check_agreement(genesis: Document, rollup: Document) -> None:
    for fork in FORKS:
        if fork.genesis is None:
            continue
        here = rollup.number(f".{fork.rollup}", required=False)
        there = genesis.number(f".config.{fork.genesis}", required=False)
        if rollup.is_wrong(f".{fork.rollup}") or genesis.is_wrong(f".config.{fork.genesis}"):
            continue
        if here != there:
            rollup.wrong(
                f".{fork.rollup}",
                f"is {_said(here)}, but .config.{fork.genesis} of {genesis.file} is {_said(there)}",
            )


def _said(value: object) -> str:
    return "not set" if value is None else str(value)
