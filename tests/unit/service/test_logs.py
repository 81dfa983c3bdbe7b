"""Log lines for machines."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from laketier.cli.shown import ShownLines
from laketier.service.logs import JsonLines

CANARY = "cAnArYs3cr3t"


class Place:
    """A value that is no text, and shows a secret."""

    def __repr__(self) -> str:
        return f"s3://user:{CANARY}@bucket/x"


def _line(msg: str, *args: object, extra: dict[str, Any] | None = None, exc_info: Any = None) -> dict[str, Any]:
    logger = logging.getLogger("laketier.test")
    record = logger.makeRecord(logger.name, logging.WARNING, "f", 1, msg, args, exc_info, extra=extra)
    text = JsonLines("w-1").format(record)
    assert "\n" not in text
    assert CANARY not in text
    assert CANARY not in ShownLines().format(record)
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


def _nested() -> Any:
    try:
        try:
            raise ValueError(f"postgresql://u:{CANARY}@h/d does not answer")
        except ValueError as error:
            raise RuntimeError({"password": CANARY, "place": Place()}) from error
    except RuntimeError as error:
        error.add_note(f"aws_secret_access_key={CANARY}")
        return sys.exc_info()


def test_a_traceback_tells_no_secret() -> None:
    """Neither in JSON nor in text: of causes, of notes, of values that the error holds."""
    line = _line("it failed: %s", Place(), exc_info=_nested())
    assert "postgresql://u:***@h/d does not answer" in line["error"]
    assert "direct cause" in line["error"]
    assert "aws_secret_access_key=***" in line["error"]
    record = logging.makeLogRecord({"msg": "x", "exc_text": f"ValueError: s3://u:{CANARY}@h"})
    assert json.loads(JsonLines().format(record))["error"] == "ValueError: s3://u:***@h"
    assert CANARY not in ShownLines().format(record)


@pytest.mark.parametrize("value", [Place(), {"password": CANARY}, [Place()], f"s3://u:{CANARY}@h"], ids=str)
def test_no_field_tells_a_secret(value: Any) -> None:
    assert "***" in _line("[table=%s epoch=%s] done", value, 1)["table"]
    assert "***" in _line("done", extra={"source": value})["source"]
    assert "***" in _line("done: %s", value)["message"]


def test_numbers_stay_numbers_and_a_stack_is_kept() -> None:
    record = logging.makeLogRecord({"msg": "x", "epoch": 3, "stack_info": f"Stack:\n  token={CANARY}"})
    line = json.loads(JsonLines().format(record))
    assert (line["epoch"], line["worker"], line["stack"]) == (3, None, "Stack:\n  token=***")
