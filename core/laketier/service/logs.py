"""Log lines for machines: one JSON object each."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from laketier.spi.redaction import redacted
from laketier.spi.visible import visible_json

_FIELDS = ("table", "source", "pipeline", "epoch", "fence", "worker")
_PLAIN = (bool, int, float, type(None))
_LED = re.compile(r"\[(?P<fields>\w+=%[sd](?: \w+=%[sd])*)\] ")


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, worker; table, epoch and fence where a line is about
    one, be they given as ``extra`` or as the message's ``[table=%s epoch=%s]``. ``worker`` is null until it is set."""

    def __init__(self, worker: str | None = None) -> None:
        super().__init__()
        self.worker = worker

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`. Never more than one line."""
        named, message = _named(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "worker": self.worker,
            **{name: getattr(record, name) for name in _FIELDS if hasattr(record, name)},
            **named,
            "message": message,
        }
        if record.exc_info or record.exc_text:
            # A handler that hands records to another thread has made a text of the error.
            line["error"] = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        # Before it is JSON: what hides a value must not take an escaped quote with it.
        told = {name: value if isinstance(value, _PLAIN) else redacted(str(value)) for name, value in line.items()}
        return visible_json(json.dumps(told, ensure_ascii=False))


def _named(record: logging.LogRecord) -> tuple[dict[str, Any], str]:
    """The fields that lead the message, and the rest of it. They are taken from the arguments, not from the text: a
    table's name may hold any character."""
    led = _LED.match(record.msg) if isinstance(record.msg, str) and isinstance(record.args, tuple) else None
    if led is None or not isinstance(record.args, tuple):
        return {}, record.getMessage()
    names = [part.partition("=")[0] for part in led["fields"].split(" ")]
    rest, left = record.msg[led.end() :], record.args[len(names) :]
    return dict(zip(names, record.args, strict=False)), rest % left if left else rest.replace("%%", "%")
