"""The files of a Spark checkpoint, as text: ``offsets/N`` and the log that a file source keeps below ``sources/``.

Spark writes an offset log in one of two versions. Version 1 has a line per source, in the order of the query's sources,
and ``-`` where a source has nothing. Version 2 (Spark 4.3: ``spark.sql.streaming.offsetLog.formatVersion``, or named
sources) has a line ``name:offset`` per source that has something, in no order, and a source's log lies below its name.
Spark 4.2 writes version 1 for named sources as well, with their logs below their names (`hides_names`).
What is of no such shape is `NotUnderstood`: nobody may take it for a description of rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_SOURCE_NAME = re.compile(r"[A-Za-z0-9_]+\Z")
_FILE_SOURCE_OFFSET = re.compile(r'\{"logOffset":(?P<log>-?[0-9]+)\}\Z')
_NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_COUNTER = re.compile(r"-?[0-9]+\Z")
NOTHING = "-"
"""The offset of a source that has none yet, in version 1."""


class NotUnderstood(Exception):
    """A file of the checkpoint has a layout that is not known here. Its text is a clause."""


def parse_offsets(text: str, name: str) -> dict[str, str]:
    """The offset of each source in an ``offsets/N``, by the name of the source's folder below ``sources/``; `NOTHING`
    for one that has none, which version 2 leaves out. ``name`` is for what goes wrong. Raises `NotUnderstood`."""
    version, _, rest = text.partition("\n")
    metadata, _, body = rest.partition("\n")
    if version.strip() not in ("v1", "v2"):
        raise NotUnderstood(f"{name} begins with {version[:40]!r}, and only versions v1 and v2 of it are known")
    if not isinstance(_json(metadata), dict):
        raise NotUnderstood(f"the second line of {name} is not an object with the batch's time and settings")
    lines = [line.strip() for line in body.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    offsets: dict[str, str] = {}
    for index, line in enumerate(lines):
        source, offset = (str(index), line) if version.strip() == "v1" else _keyed(line, name)
        if source in offsets:
            raise NotUnderstood(f"{name} has two offsets of source {source}")
        if offset != NOTHING and _json(offset) is None:
            raise NotUnderstood(f"the offset of source {source} in {name} is not JSON: {offset[:80]!r}")
        offsets[source] = offset
    return offsets


def has_settings(text: str) -> bool:
    """Whether an ``offsets/N`` tells the time and the settings of a micro-batch, in a layout known here or not."""
    return text.count("\n") < 1 or bool(text.split("\n")[1].strip())


def hides_names(text: str) -> bool:
    """Whether an ``offsets/N`` tells sources by their places, while their logs lie below names that are not in it."""
    version, _, rest = text.partition("\n")
    metadata = _json(rest.partition("\n")[0])
    settings = metadata.get("conf") if isinstance(metadata, dict) else None
    return version.strip() == "v1" and isinstance(settings, dict) and settings.get(_NAMED_SOURCES) == "true"


def in_order(offsets: dict[str, str]) -> list[str]:
    """The names of sources in an order that both versions share: numbers by their value, then names."""
    return sorted(offsets, key=lambda source: (0, int(source), "") if source.isdigit() else (1, 0, source))


def file_source_batch(offset: str) -> int | None:
    """The newest batch in the source's own log that a file source's offset stands for; None for other offsets. Raises
    `NotUnderstood` for a file source's offset that says more than that."""
    match = _FILE_SOURCE_OFFSET.match(offset)
    if match is not None:
        return int(match["log"])
    if offset == NOTHING:
        return None
    document = _json(offset)
    if isinstance(document, dict) and "logOffset" in document:
        raise NotUnderstood(f"the offset {offset[:80]!r} is not the one that file sources are known to write")
    return None


def is_counter(offset: str) -> bool:
    """Whether the offset is a bare number, which says nothing about rows by itself."""
    return _COUNTER.match(offset) is not None


def file_source_entries(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Read a log of a file source, as Spark keeps it in a checkpoint's ``sources/``. Yields, for each file that it
    lists, the id of the batch that read the file, and the log's line. ``name``: that of the log, for messages. Raises
    `NotUnderstood` for another version or form of the log."""
    lines = text.split("\n")
    if lines[0].strip() != "v1":
        raise NotUnderstood(f"{name} begins with {lines[0][:40]!r}, and only version v1 of it is known")
    for line in lines[1:]:
        if not line.strip():
            continue
        entry = _json(line)
        batch = entry.get("batchId") if isinstance(entry, dict) else None
        if type(batch) is not int or not isinstance(entry.get("path"), str):
            raise NotUnderstood(f"{name} holds a line that is not a file's: {line.strip()[:80]!r}")
        yield batch, line.strip()


def _keyed(line: str, name: str) -> tuple[str, str]:
    source, colon, offset = line.partition(":")
    if not colon or not _SOURCE_NAME.match(source):
        raise NotUnderstood(f"{name} has a line that is not `source:offset`: {line[:80]!r}")
    return source, offset.strip()


def _json(text: str) -> Any:
    """The value; None for what is not JSON (and for null, which no offset is)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
