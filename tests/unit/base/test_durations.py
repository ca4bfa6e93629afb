"""Spans of time, read and told."""

import pytest

from pequod.base.durations import seconds, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400), ("0s", 0)],
)
def test_durations_are_read_as_kubernetes_reads_them(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "10", "m", "-1s", "1d", "1s ", "1s1", "٣s", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (0.0084, "8 ms"),
        (3, "3 s"),
        (12.345, "12.3 s"),
        (60, "1 min"),
        (95, "1 min 35 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
    ],
)
def test_spans_are_told_without_false_precision(span: float, expected: str) -> None:
    assert words(span) == expected
