"""Whether a chain makes progress: by where its heads were, and when."""

import pytest

from pequod.controllers.rollup.progress import Head, Heads, Progress

WINDOW = 600.0
NOON = 10_000.0
"""Some time of a clock that does not begin with us."""


def seen(*heights: tuple[float, int]) -> Head:
    """A head that was seen at places over time."""
    head = Head()
    for after, height in heights:
        head.saw(height, NOON + after)
    return head


def lived(*looks: tuple[float, int, int]) -> Progress:
    """A chain whose unsafe and safe head were seen over time."""
    progress = Progress()
    for after, unsafe, safe in looks:
        progress.saw(Heads(unsafe=unsafe, safe=safe, finalized=0), NOON + after)
    return progress


def test_a_head_that_nobody_saw_neither_moves_nor_stands_still() -> None:
    head = Head()
    assert not head.moves(NOON, WINDOW)
    assert head.still_for(NOON) == 0


def test_a_head_that_was_seen_once_is_not_known_to_move() -> None:
    head = seen((0, 7))
    assert not head.moves(NOON, WINDOW)
    assert head.still_for(NOON + 30) == 30


def test_a_head_moves_when_it_is_seen_further_on() -> None:
    head = seen((0, 7), (10, 8))
    assert head.moves(NOON + 10, WINDOW)
    assert head.still_for(NOON + 15) == 5


def test_a_head_that_is_seen_where_it_was_stands_still() -> None:
    head = seen((0, 7), (10, 8), (20, 8), (500, 8))
    assert head.still_for(NOON + 500) == 490
    assert head.moved_at == NOON + 10


@pytest.mark.parametrize(("after", "moves"), [(0, True), (600, True), (600.1, False)])
def test_a_head_moves_until_its_window_is_over(after: float, *, moves: bool) -> None:
    assert seen((-10, 7), (0, 8)).moves(NOON + after, WINDOW) is moves


def test_a_step_back_is_no_progress() -> None:
    """L1 was reorganised, or op-node began anew: what it knew is void."""
    head = seen((0, 7), (10, 8), (20, 3))
    assert head.height == 3
    assert head.moved_at == NOON + 10
    assert head.still_for(NOON + 30) == 10


def test_a_head_moves_from_where_it_fell_back_to() -> None:
    head = seen((0, 100), (10, 3), (20, 4))
    assert head.moves(NOON + 20, WINDOW)
    assert head.still_for(NOON + 25) == 5


def test_a_head_that_is_excused_stands_still_from_then_on() -> None:
    head = seen((0, 7))
    head.excuse(NOON + 100)
    assert head.still_for(NOON + 130) == 30
    assert head.height == 7
    assert not head.moves(NOON + 130, WINDOW)


def test_nobody_is_excused_who_was_never_seen() -> None:
    head = Head()
    head.excuse(NOON)
    assert head.still_for(NOON + 10) == 0


def test_a_chain_without_batches_has_a_stalled_safe_head() -> None:
    progress = lived((0, 10, 5), (300, 160, 5), (601, 310, 5))
    assert progress.safe_head_stalled(NOON + 601, WINDOW)


def test_a_safe_head_has_the_whole_window() -> None:
    progress = lived((0, 10, 5), (600, 310, 5))
    assert not progress.safe_head_stalled(NOON + 600, WINDOW)


def test_a_chain_that_stands_still_as_a_whole_has_another_problem() -> None:
    progress = lived((0, 10, 5), (300, 10, 5), (2000, 10, 5))
    assert not progress.safe_head_stalled(NOON + 2000, WINDOW)


def test_a_safe_head_that_moves_now_and_then_is_well() -> None:
    looks = [(100.0 * n, 50 * n, 40 * (n // 5)) for n in range(60)]
    for count in range(1, len(looks)):
        progress, now = lived(*looks[:count]), NOON + looks[count - 1][0]
        assert not progress.safe_head_stalled(now, WINDOW), count


def test_a_stall_ends_with_the_next_batch() -> None:
    progress = lived((0, 10, 5), (300, 160, 5), (700, 310, 5), (710, 315, 300))
    assert not progress.safe_head_stalled(NOON + 710, WINDOW)


def test_a_stall_is_seen_through_a_silence() -> None:
    """Nobody could look for a while; the safe head is found where it was."""
    progress = lived((0, 10, 5), (900, 460, 5))
    assert progress.safe_head_stalled(NOON + 900, WINDOW)


def test_a_silence_is_no_stall() -> None:
    progress = lived((0, 10, 5), (10, 15, 6))
    assert not progress.safe_head_stalled(NOON + 5000, WINDOW)


def test_a_chain_that_was_reorganised_has_its_window_anew() -> None:
    progress = lived((0, 100, 90), (590, 400, 90), (595, 80, 70), (700, 130, 70))
    assert not progress.safe_head_stalled(NOON + 700, WINDOW)
    progress.saw(Heads(unsafe=400, safe=70, finalized=0), NOON + 1200)
    assert progress.safe_head_stalled(NOON + 1200, WINDOW)


def test_an_operator_that_was_started_anew_takes_its_time() -> None:
    """It cannot know for how long the safe head has stood where it finds it."""
    progress = lived((0, 1000, 5), (30, 1015, 5))
    assert not progress.safe_head_stalled(NOON + 30, WINDOW)


def test_the_finalized_head_is_where_it_was_last() -> None:
    progress = Progress()
    assert progress.finalized is None
    progress.saw(Heads(unsafe=3, safe=2, finalized=1), NOON)
    progress.saw(Heads(unsafe=3, safe=2, finalized=0), NOON)
    assert progress.finalized == 0


def test_a_head_counts_as_moved_after_a_moment_only_when_it_was_seen_twice_after_it() -> None:
    """What was made before that moment, and seen after it, was made by somebody else."""
    before = seen((1.0, 10), (3.0, 11))
    assert not before.moved_after(NOON + 4.0)
    once = seen((1.0, 10), (3.0, 11), (5.0, 12))
    assert not once.moved_after(NOON + 4.0)
    twice = seen((1.0, 10), (3.0, 11), (5.0, 12), (7.0, 13))
    assert twice.moved_after(NOON + 4.0)
