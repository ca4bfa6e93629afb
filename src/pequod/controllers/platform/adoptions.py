"""What a graph says of the objects that join it: what became of them, or would."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from pequod.api import reasons
from pequod.api.graph import Adopt
from pequod.controllers.platform import reporting
from pequod.controllers.platform.adopting import each, live_object
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.preparing import Prepared
from pequod.controllers.platform.views import POLL
from pequod.graph import rehearsal
from pequod.graph.adopt import Adoption, listed
from pequod.graph.desired import UnusableObjectError
from pequod.graph.differences import described
from pequod.graph.executor import Outcome
from pequod.graph.members import Member
from pequod.graph.model import GRAPH_LABEL
from pequod.graph.problems import explained
from pequod.graph.run import Compared, Run
from pequod.graph.takeover import require_acceptable
from pequod.kube.errors import KubeError
from pequod.kube.objects import Object
from pequod.runtime.verdicts import Waiting

_MOST = 10


def told(spec: Adopt, adoption: Adoption, run: Run, outcome: Outcome, actor: Actor) -> str:
    """What `Adopted` says; raises a verdict while some objects have not joined."""
    chosen = sorted(adoption.chosen.nodes)
    _require_joined(chosen, outcome, run)
    if adoption.said:
        return adoption.said
    if spec.strategy == "Mirror":
        text = (
            f"{_objects(len(chosen))} mirrored, {_differing(chosen, run)}; looked at every "
            f"{POLL:.0f} s in the name of {actor.name}, and never written"
        )
    else:
        joined = [id_ for id_ in chosen if run.records[id_].previous_managers]
        made = len(chosen) - len(joined)
        text = f"{_objects(len(joined))} adopted"
        if made:
            text += f"; {made} did not exist and {'was' if made == 1 else 'were'} made"
    return "; ".join(part for part in (text, listed(adoption.chosen.left_alone)) if part)


def _differing(chosen: Iterable[str], run: Run) -> str:
    texts = [
        run.compared[ref].differs
        for id_ in chosen
        if (ref := run.records[id_].ref_id) in run.compared
    ]
    differing = sum(1 for text in texts if text != rehearsal.SAME)
    return f"{differing} with differences (readyDetails)" if differing else rehearsal.SAME


def _require_joined(chosen: Iterable[str], outcome: Outcome, run: Run) -> None:
    ids = set(chosen)
    failed = {id_: problem for id_, problem in outcome.failed.items() if id_ in ids}
    after = reporting.until(outcome.wake)
    if failed:
        problem = min(failed.values(), key=lambda one: one.transient)
        text = f"{len(failed)} of {len(ids)} not adopted: " + "; ".join(
            one.message for one in [*failed.values()][:5]
        )
        if problem.transient:
            raise reporting.NotAppliedError(problem.reason, text, after or 1.0)
        raise Waiting(problem.reason, text, after=after)
    if waiting := [id_ for id_ in outcome.waiting if id_ in ids]:
        shown = ", ".join(f"{id_} ({run.records[id_].details})" for id_ in waiting[:5])
        text = f"{len(waiting)} of {len(ids)} not adopted yet: {shown}"
        raise Waiting(reasons.WAITING_FOR_NODES, text, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsing:
    """Finds out what an adoption would change, and changes nothing."""

    run: Run
    actor: Actor
    lives: Callable[[str], bool]
    """Whether there is a graph of a UID."""

    async def rehearse(self, adoption: Adoption, prepared: Prepared) -> NoReturn:
        """Say in each node what would become of its object; always a verdict, since it stays so."""
        chosen = [
            prepared.members[id_]
            for id_ in sorted(adoption.chosen.nodes)
            if id_ in prepared.members
        ]
        said: dict[str, str] = {}

        async def look(member: Member) -> None:
            said[member.node.id] = text = await self._said(member)
            record = self.run.record(member.node.id, member.ref.id)
            record.details, record.problem = text, None

        await each(chosen, look)
        parts = [f"{one.ref} {said[one.node.id]}" for one in chosen[:_MOST]]
        if len(chosen) > _MOST:
            parts.append(f"and {len(chosen) - _MOST} more, see readyDetails of their nodes")
        parts += [problem.message for problem in [*adoption.refused.values()][:_MOST]]
        parts += [text for text in (listed(adoption.chosen.left_alone),) if text]
        raise Waiting(
            reasons.DRY_RUN,
            "this is a dry run, and nothing of the graph is written until adopt.dryRun is taken "
            f"away: {'; '.join(parts) or 'no object would be adopted'}",
            after=POLL,
        )

    async def _said(self, member: Member) -> str:
        """What would become of the object of a node."""
        try:
            live = await live_object(self.actor.client, member)
            if live is None:
                absent = "would be waited for" if member.mirrored else "would be made"
                return f"does not exist and {absent}"
            return self._obstacle(member, live) or await self._compared(member, live)
        except (KubeError, UnusableObjectError) as error:
            problem = explained(error, member.ref, sensitive=member.sensitive)
            return f"would be refused: {problem.message}"

    def _obstacle(self, member: Member, live: Object) -> str:
        metadata = live["metadata"]
        label = (metadata.get("labels") or {}).get(GRAPH_LABEL)
        if member.mirrored:
            return ""
        if label == self.run.graph:
            return "belongs to the graph already"
        if label and self.lives(label):
            return f"would be refused: it belongs to another graph ({GRAPH_LABEL}={label})"
        if metadata.get("deletionTimestamp"):
            return "is being deleted, and would be made anew when it is gone"
        return ""

    async def _compared(self, member: Member, live: Object) -> str:
        """The same as before where neither the object nor what is asked for has changed."""
        version, known = live["metadata"]["resourceVersion"], self.run.compared.get(member.ref.id)
        if known is not None and (known.version, known.digest) == (version, member.digest):
            return known.differs
        text, sure = await self._differs(member, live)
        self.run.compared[member.ref.id] = Compared(version if sure else "", member.digest, text)
        return text

    async def _differs(self, member: Member, live: Object) -> tuple[str, bool]:
        client = self.actor.client
        if member.mirrored:
            text, sure = await rehearsal.differing(client, member, live)
            return f"would be mirrored: {text}", sure
        if member.template is not None:
            return "would be adopted; what it takes from other nodes is not known yet", True
        wanted = await member.body()
        force = member.node.apply_policy.conflict_policy == "Force"
        await require_acceptable(client, wanted, live["metadata"]["uid"], force=force)
        found = await rehearsal.adopted(client, wanted, live, hidden=member.sensitive)
        return f"would be adopted: {described(found) if found else 'nothing changes'}", True


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count or 'no'} objects"
