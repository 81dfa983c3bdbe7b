"""Writes ``docs/reference/codecs.md`` from the table of values: ``python tests/support/codec_page.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codec_values import BAD, CASES

_HEAD = """# What text becomes

JSON and CSV are read by one rule each, whatever they come from: a topic, a landing zone, a dead letter that is
replayed. A value is kept as it is, or its record is bad; nothing is rounded, cut off or moved to another zone. This
table is the one that the tests run through all sources.

| Type | In JSON | In CSV | Becomes | |
|---|---|---|---|---|
"""
_TAIL = """
Typed formats say what they mean, and are read the same way everywhere: Avro by its schema (`uuid` is a string,
`decimal`, `date`, `time-*` and `timestamp-*` are Arrow's), Protobuf by its descriptors (an enum is its name, or the
number of one that has none; a `Timestamp` is `timestamp[ns, UTC]`), and Arrow by itself. Columns are matched by name,
and cast only where no value changes.

| What | Becomes |
|---|---|
| An Avro union of several types beside null, an Avro type that contains itself | refused by name |
| An Avro array of items that take no bytes | refused by name |
| An Avro value whose decimal has more digits than its precision | bad record |
| Bytes left after an Avro or Protobuf record | bad record |
| A Protobuf field that is no column | passed over |
| A Protobuf field that is written in another form than its type has | bad record |
| A number that a closed enum of Protobuf (proto2) does not have | bad record |
| An Arrow stream without the mark of its end, in a topic | read: a record is whole, as the log has its length |
| The same as a file in a landing zone | its rows are read, and it is told as a bad file: it may have been cut off |
| An Arrow file without a footer, or whose footer tells of other batches | bad record, or bad file |
| A Parquet or Arrow file of no rows | no rows |
"""


def page() -> str:
    """Its text."""
    lines = []
    for case in CASES:
        becomes = _shown(case.value)
        if case.csv_value is not None:
            becomes = f"{becomes}; in CSV {_shown(case.csv_value)}"
        lines.append(f"| `{case.kind}` | {_text(case.json)} | {_text(case.csv)} | {becomes} | {case.note} |\n")
    return _HEAD + "".join(lines) + _TAIL


def _text(text: str | None) -> str:
    if text is None:
        return ""
    if len(text) > 40:
        text = f"{text[:8]}… ({len(text)} characters)"
    text = text.replace("\x00", "NUL").replace("\t", "TAB")
    return f"`{text}`" if text else "nothing"


def _shown(value: Any) -> str:
    return (
        "**bad record**"
        if value is BAD
        else f"`{value!r}`".replace("datetime.", "").replace("timezone.utc", "UTC").replace("\\x00", "NUL")
    )


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "reference" / "codecs.md").write_text(page())
