"""Case 100h: what others wrote can neither forge a line nor steer a terminal."""

import io
import logging
from collections.abc import Iterator

import msgspec
import pytest
import structlog

from pequod.base import logs

HOSTILE = 'a\nlevel=error \x1b[31m\r\u2028"b'


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = before
    root.setLevel(level)


def logged(style: logs.Format, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.set_up(level=level, style=style, stream=stream)
    return stream


def test_json_is_one_object_a_line_with_level_time_and_values() -> None:
    stream = logged("json")
    structlog.get_logger().info("object applied", name="web", count=3)
    line = msgspec.json.decode(stream.getvalue())
    assert line["event"] == "object applied"
    assert (line["name"], line["count"], line["level"]) == ("web", 3, "info")
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("style", ["json", "console"])
def test_case_100h_hostile_values_stay_on_their_line(style: logs.Format) -> None:
    stream = logged(style)
    structlog.get_logger().info("object applied", name=HOSTILE)
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


def test_a_file_gets_json_unless_told_otherwise() -> None:
    stream = logged("auto")
    structlog.get_logger().info("here")
    assert msgspec.json.decode(stream.getvalue())["event"] == "here"


def test_what_is_below_the_level_is_not_logged() -> None:
    stream = logged("json", level="warning")
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert msgspec.json.decode(stream.getvalue())["event"] == "loud"


def test_other_libraries_are_logged_in_the_same_form() -> None:
    stream = logged("json")
    logging.getLogger("somebody.else").warning("careful: %s", "now")
    line = msgspec.json.decode(stream.getvalue())
    assert (line["event"], line["level"]) == ("careful: now", "warning")


def test_an_exception_is_logged_with_its_traceback() -> None:
    stream = logged("json")
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        structlog.get_logger().warning("failed", exc_info=True)
    line = msgspec.json.decode(stream.getvalue())
    assert "ZeroDivisionError" in line["exception"]


def test_text_that_is_too_long_is_cut() -> None:
    assert logs.one_line("x" * 10, longest=4) == "xxxx…"
