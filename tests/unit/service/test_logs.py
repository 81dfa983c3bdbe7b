"""Log lines for machines."""

from __future__ import annotations

import json
import logging
from typing import Any

from laketier.service.logs import JsonLines


def _line(msg: str, *args: object, extra: dict[str, Any] | None = None, exc_info: Any = None) -> dict[str, Any]:
    logger = logging.getLogger("laketier.test")
    record = logger.makeRecord(logger.name, logging.WARNING, "f", 1, msg, args, exc_info, extra=extra)
    text = JsonLines("w-1").format(record)
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_about_a_round() -> None:
    line = _line("[table=%s epoch=%s fence=%s] %s: %d rows, 100 %%", "s.a] b=c", 4, 7, "published", 12)
    assert (line["table"], line["epoch"], line["fence"]) == ("s.a] b=c", 4, 7)
    assert line["message"] == "published: 12 rows, 100 %"
    assert (line["level"], line["logger"], line["worker"]) == ("WARNING", "laketier.test", "w-1")
    assert line["time"].endswith("+00:00")


def test_fields_given_beside_the_message() -> None:
    line = _line("done", extra={"table": "s.t", "epoch": 3, "unknown": 1})
    assert (line["table"], line["epoch"], line["message"]) == ("s.t", 3, "done")
    assert "unknown" not in line


def test_a_line_about_nothing_in_particular() -> None:
    assert _line("a heartbeat was not heard: %s", "why\nnot")["message"] == "a heartbeat was not heard: why\nnot"
    assert _line("[table=%s] 100 %% gone", "t")["message"] == "100 % gone"
    assert "table" not in _line("no [table=%s] in front", "t")


def test_an_error_is_one_line_too() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        line = _line("[table=%s] failed", "t", exc_info=(type(error), error, error.__traceback__))
    assert line["table"] == "t"
    assert "ValueError: first\nsecond" in line["error"]
