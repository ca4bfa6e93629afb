"""Which revision is to run."""

from datetime import UTC, datetime, timedelta

from pequod.api.graph import GraphMetadata
from pequod.api.platform import Revision, Rollout
from pequod.controllers.platform.rollouts import History, Trial, is_overdue, remaining
from pequod.graph.revisions import Stored

NOW = datetime(2026, 11, 15, tzinfo=UTC)


RETURNS = Rollout(auto_rollback=True, deadline="10s")


def stored(number: int) -> Stored:
    return Stored(
        number=number, render_hash=f"h{number}", created_at=NOW, name=f"web-{number}", uid="u"
    )


def history(*ready: int, failed: int = 0, most: int = 3) -> History:
    told = [
        Revision(
            revision=number,
            render_hash=f"h{number}",
            created_at=NOW,
            ready=number in ready,
            failed=number == failed,
        )
        for number in range(1, most + 1)
    ]
    return History.of([stored(number) for number in range(most, 0, -1)], told)


def test_the_last_good_revision_is_the_newest_before_that_was_ready() -> None:
    known = history(1, 2)
    assert known.last_good(stored(3)) == stored(2)
    assert known.last_good(stored(2)) == stored(1)
    assert known.last_good(stored(1)) is None
    assert history().last_good(stored(3)) is None


def test_what_the_status_says_is_kept_and_what_is_not_stored_any_more_is_forgotten() -> None:
    told = history(1, failed=3).told()
    again = History.of([stored(3), stored(2)], told)
    assert again.has_failed(stored(3))
    assert not again.has_proved(stored(2))
    assert [one.revision for one in again.told()] == [3, 2]


def test_a_revision_that_was_given_up_and_becomes_ready_is_good_again() -> None:
    known = history(1).given_up(stored(3))
    assert known.has_failed(stored(3))
    assert not known.proved(stored(3)).has_failed(stored(3))


def test_a_new_revision_is_known_from_then_on() -> None:
    known = history(1).with_known(stored(4))
    assert known.find(4) == stored(4)
    assert known.with_known(stored(4)) is known
    assert known.last_good(stored(4)) == stored(1)


def test_a_deadline_counts_from_when_the_revision_was_put_in_place() -> None:
    assert not is_overdue(None, 10, NOW)
    assert not is_overdue(NOW, 10, NOW + timedelta(seconds=9))
    assert is_overdue(NOW, 10, NOW + timedelta(seconds=10))
    assert remaining(None, 10, NOW) is None
    assert remaining(NOW, 10, NOW + timedelta(seconds=4)) == 6
    assert remaining(NOW, 10, NOW + timedelta(seconds=40)) == 0.1


def test_only_the_newest_revision_is_on_trial_while_it_runs_and_has_never_been_ready() -> None:
    running = GraphMetadata(render_hash="h3", rendered_at=NOW)
    trial = Trial.of(history(1), running, RETURNS)
    assert trial is not None
    assert (trial.wanted, trial.good) == (stored(3), stored(1))
    assert not trial.is_over(NOW + timedelta(seconds=9))
    assert trial.is_over(NOW + timedelta(seconds=10))
    assert trial.left(NOW) == 10
    assert Trial.of(history(1, 3), running, RETURNS) is None, "it was Ready once"
    assert Trial.of(history(), running, RETURNS) is None, "there is no way back"
    assert Trial.of(history(1), GraphMetadata(render_hash="h1"), RETURNS) is None
    assert Trial.of(history(1), running, Rollout()) is None
    assert Trial.of(history(1), running, None) is None
    assert Trial.of(history(most=0), running, RETURNS) is None


def test_a_graph_holds_the_newest_revision_of_what_was_rendered_twice() -> None:
    again = Stored(number=4, render_hash="h1", created_at=NOW, name="web-4", uid="u")
    known = history(1).with_known(again)
    assert known.holding("h1") == again
    assert known.holding("h2") == stored(2)
    assert known.holding("unheard-of") is None
