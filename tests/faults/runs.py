"""One graph on its way through a scenario while something fails, and the verdict of the oracles."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web

from faultproxy import Action, Call, Exchange, Rule
from faults import oracles
from faults.scenarios import Scenario
from faults.stage import PATIENCE, Stage, in_thread, writes_of
from graphs import Graphs, Object
from pequod.graph.model import GRAPH_LABEL

QUIET = 1.5
"""Seconds after the last run in which nothing may be written."""


@dataclass(frozen=True)
class Budget:
    """What a fault may cost."""

    more: int = 5
    """Writes beyond those of a run without it."""
    ambiguous: bool = False
    """Whether the operator cannot know that a write was done: it may try again, in vain."""


@dataclass
class Run:
    """One graph on its way through a scenario."""

    graphs: Graphs
    scenario: Scenario
    fault: str = "no fault"
    write: int = 0
    graph: str = ""
    """UID of the graph."""
    before: dict[str, str] = field(default_factory=dict)
    """UIDs of the objects before the scenario began."""
    made: frozenset[str] = frozenset()
    """UIDs of objects of the graph that were there when the operator had died."""
    hit: Call | None = None
    """The write that the fault happened to."""
    began: float = 0.0
    settled: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return self.graphs.namespace

    @property
    def seconds(self) -> float:
        return self.settled - self.began

    def is_settled(self) -> bool:
        return self.scenario.is_settled(self.graphs)


@dataclass(frozen=True)
class Reference:
    """How a scenario ends without a fault, and what that takes."""

    state: oracles.State
    writes: int


class Player:
    """Plays runs of one scenario, and judges them."""

    def __init__(self, stage: Stage, scenario: Scenario) -> None:
        self.stage = stage
        self.scenario = scenario
        self.played: list[Run] = []
        self._reference: Reference | None = None

    async def reference(self) -> Reference:
        """What runs without a fault show; they agree."""
        if self._reference is None:
            runs = await self.prepared([await self.fresh() for _ in range(3)])
            await asyncio.gather(*(self.play(run) for run in runs))
            states = await asyncio.gather(*(self._state(run) for run in runs))
            await asyncio.sleep(QUIET)
            for run in runs:
                run.problems += oracles.differences(states[0], states[runs.index(run)])
                self._judge_journal(run, most=60, ambiguous=False)
            assert not any(run.problems for run in runs), self.described(runs)
            counts = [len(self._writes(run)) for run in runs]
            self._reference = Reference(states[0], max(counts))
        return self._reference

    async def fresh(self, fault: str = "no fault", write: int = 0) -> Run:
        return Run(await self.stage.namespace(), self.scenario, fault, write)

    async def prepared(self, runs: list[Run]) -> list[Run]:
        """Bring runs to where the scenario begins."""
        asked = [in_thread(partial(run.scenario.prepare, run.graphs)) for run in runs]
        await asyncio.gather(*asked)
        if self.scenario.has_graph:
            await asyncio.gather(*(self._until_ready(run) for run in runs))
        return runs

    async def _until_ready(self, run: Run) -> None:
        await self.stage.until(partial(run.scenario.is_begun, run.graphs), "it can begin")
        run.before = oracles.uids(await in_thread(partial(oracles.objects, run.graphs)))

    async def play(self, run: Run, action: Action | None = None) -> None:
        """Let a scenario happen, with its fault, and wait until it has settled."""
        clock = asyncio.get_running_loop().time
        run.began = clock()
        rule = self._armed(run, action) if action is not None else None
        if run.scenario.has_graph:
            run.graph = await self._uid(run)
        await in_thread(partial(run.scenario.act, run.graphs))
        try:
            await self.stage.until(run.is_settled, "the scenario has settled", within=PATIENCE)
            if not run.scenario.has_graph:
                run.graph = await self._uid(run)
        except AssertionError as error:
            run.problems.append(str(error))
        run.settled = clock()
        if rule is not None:
            rule.remove()
        self.played.append(run)

    def _armed(self, run: Run, action: Action) -> Rule:
        """Let an action happen to the write of a run that its fault is about."""

        async def act(exchange: Exchange) -> web.StreamResponse:
            run.hit = exchange.call
            return await action(exchange)

        return self.stage.proxy.rule(writes_of(run.namespace), act, first=run.write, times=1)

    async def interrupt(self, run: Run, action: Action) -> None:
        """Let a scenario begin, and end it by deleting the graph when the operator has died."""
        clock = asyncio.get_running_loop().time
        run.began = clock()
        rule = self._armed(run, action)
        await in_thread(partial(run.scenario.act, run.graphs))
        run.graph = await self._uid(run)
        await self.stage.until(
            lambda: self.stage.held or run.is_settled(), "the operator has died, or is done"
        )
        rule.remove()
        run.made = uids_of(await in_thread(partial(oracles.objects, run.graphs)), run.graph)
        await in_thread(partial(run.graphs.delete, run.scenario.graph))
        self.stage.resume()
        try:
            name = run.scenario.graph
            await self.stage.until(lambda: not run.graphs.exists(name), "the graph is gone")
        except AssertionError as error:
            run.problems.append(str(error))
        run.settled = clock()
        left = await in_thread(partial(oracles.objects, run.graphs))
        run.problems += [f"{name} was left behind" for name in left]
        self._judge_journal(run, most=60, ambiguous=False)

    async def _uid(self, run: Run) -> str:
        graph = await in_thread(partial(run.graphs.get, run.scenario.graph))
        return str(graph["metadata"]["uid"])

    async def _state(self, run: Run) -> oracles.State:
        state = await in_thread(partial(oracles.state, run.graphs, run.scenario.graph))
        return {**state, "rest": await in_thread(partial(run.scenario.rest, run.graphs))}

    async def judge(self, run: Run) -> None:
        """O2, O11: what is there when it says so; O3: those that should survive have."""
        reference = await self.reference()
        run.problems += oracles.differences(reference.state, await self._state(run))
        now = oracles.uids(await in_thread(partial(oracles.objects, run.graphs)))
        run.problems += [
            f"{name} is another object than before"
            for name in run.scenario.survivors
            if run.before.get(name) != now.get(name)
        ]

    async def conclude(self, runs: Sequence[Run], budget: Budget, replay: str = "") -> None:
        """O1, O3, O5: ask the journal when it has been quiet for long enough; raise for the lot."""
        reference = await self.reference()
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(run.settled for run in runs) + QUIET - clock())
        for run in runs:
            most = reference.writes + budget.more
            self._judge_journal(run, most=most, ambiguous=budget.ambiguous)
        self.require(runs, replay)

    def require(self, runs: Sequence[Run], replay: str) -> None:
        """Raise for all runs that have failed."""
        failed = [run for run in runs if run.problems]
        assert not failed, self.described(failed, replay)

    def _judge_journal(self, run: Run, *, most: int, ambiguous: bool) -> None:
        asked = [call for call in self.stage.proxy.journal if run.namespace in call.path]
        run.problems += oracles.wrong_deletes(asked, run.graph, run.made)
        writes = self._writes(run)
        run.problems += oracles.made_twice(writes)
        if len(writes) > most:
            run.problems.append(f"{len(writes)} writes, but {most} are enough")
        in_vain = {404, 409} if ambiguous else set()
        late = [c for c in writes if c.at > run.settled and c.code not in in_vain]
        if late:
            run.problems.append(f"not quiet afterwards:\n{oracles.shown(late)}")

    def _writes(self, run: Run) -> list[Call]:
        return [call for call in self.stage.writes(run.namespace) if call.at >= run.began]

    def described(self, failed: Sequence[Run], replay: str = "") -> str:
        """What went wrong, for a person, and how to see it again."""
        parts = []
        for run in failed:
            hit = f"{run.hit.method} {run.hit.path}" if run.hit else "which never came"
            problems = "\n".join(f"  {problem}" for problem in run.problems)
            parts.append(
                f"{run.scenario.name}, {run.fault} at write {run.write} ({hit}):\n"
                f"{problems}\nWritten:\n{oracles.shown(self._writes(run))}"
            )
            if replay:
                point = f"{run.scenario.name}/{run.fault}/{run.write}"
                parts.append(f"Replay: PEQUOD_FAULTS={point} {replay}")
        return "\n\n".join(parts)


def uids_of(found: Mapping[str, Object], graph: str) -> frozenset[str]:
    """The UIDs of those objects that carry a graph's label."""
    ours = (one["metadata"] for one in found.values())
    return frozenset(one["uid"] for one in ours if one["labels"][GRAPH_LABEL] == graph)
