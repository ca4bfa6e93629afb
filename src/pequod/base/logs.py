"""Structured logs: JSON for machines, columns for people, and no way to forge a line.

Modules log through `structlog.get_logger()`: a constant message in lower case, then keys and
values. What other libraries say through `logging` comes out in the same form.
"""

import logging
import re
import sys
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "json", "console"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST = 4096


def set_up(*, level: str, style: Format = "auto", stream: TextIO | None = None) -> None:
    """Decide what is logged, and how: once, when a program starts."""
    stream = stream or sys.stderr
    as_json = style == "json" or (style == "auto" and not stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _escaped,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        cache_logger_on_first_use=True,
    )
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _escaped(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep a value on its line: names, messages and refs are other people's text."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = one_line(value) if key != "exception" else value[:_LONGEST]
    return event


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Text without line breaks, terminal codes and other control characters, and not too long."""
    shown = _CONTROL.sub(lambda found: repr(found.group())[1:-1], text[:longest])
    return shown + "…" if len(text) > longest else shown
