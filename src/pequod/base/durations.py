"""Spans of time as Go and Kubernetes write them: `90s`, `10m`, `1h30m`."""

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def seconds(duration: str) -> float:
    """A duration in seconds; ValueError when it is none."""
    if not _WHOLE.fullmatch(duration):
        raise ValueError(f"{duration!r} is not a duration such as 90s, 10m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))


def words(span: float) -> str:
    """A span of time for a person: two units at most, and no false precision."""
    if span < 1:
        return f"{span * 1000:.0f} ms"
    if span < 60:
        return f"{span:.3g} s"
    minutes, rest = divmod(round(span), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
