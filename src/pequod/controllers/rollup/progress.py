"""Whether a chain makes progress: what its heads did over time. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Heads:
    """Where op-node stands."""

    unsafe: int
    safe: int
    finalized: int


@dataclass(slots=True)
class Head:
    """One head, and when it moved."""

    height: int | None = None
    since: float = 0.0
    """When it was first seen where it is."""
    moved_at: float | None = None
    """When it was last seen to move on; None until then."""
    moved_from: float = 0.0
    """When it had last been seen before it moved on."""
    seen_at: float = 0.0

    def saw(self, height: int, now: float) -> None:
        """It was seen somewhere; a step back is no progress."""
        if self.height is None or height < self.height:
            self.height, self.since = height, now
        elif height > self.height:
            self.moved_from = self.seen_at
            self.height, self.since, self.moved_at = height, now, now
        self.seen_at = now

    def moved_after(self, moment: float) -> bool:
        """Whether it moved on, all the way, after a moment."""
        return self.moved_at is not None and self.moved_from > moment

    def excuse(self, now: float) -> None:
        """It cannot move at present: that it stands still counts from now on only."""
        self.since = now

    def still_for(self, now: float) -> float:
        """Seconds for which it has stood still."""
        return now - self.since if self.height is not None else 0.0

    def moves(self, now: float, window: float) -> bool:
        """Whether it was seen to move on lately."""
        return self.moved_at is not None and now - self.moved_at <= window


@dataclass(slots=True)
class Progress:
    """What the heads of one chain did."""

    unsafe: Head = field(default_factory=Head)
    safe: Head = field(default_factory=Head)
    finalized: int | None = None

    def saw(self, heads: Heads, now: float) -> None:
        """The heads were seen."""
        self.unsafe.saw(heads.unsafe, now)
        self.safe.saw(heads.safe, now)
        self.finalized = heads.finalized

    def safe_head_stalled(self, now: float, window: float) -> bool:
        """Whether the safe head stands still for too long while the unsafe head moves."""
        return self.safe.still_for(now) > window and self.unsafe.moves(now, window)
