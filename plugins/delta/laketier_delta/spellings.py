"""Partition values of instants that do not say their zone, as laketier left them before, and as delta-rs does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt

from laketier_delta.location import LOG, Location
from laketier_delta.references import LogFiles


def zoned_partitions(schema: pa.Schema, partition_columns: Iterable[str]) -> list[str]:
    """The partition columns whose values are instants."""
    kinds = {name: schema.field(name).type for name in partition_columns}
    return [name for name, kind in kinds.items() if pt.is_timestamp(kind) and kind.tz is not None]


def files_without_zone(location: Location, columns: Sequence[str]) -> int:
    """How many live files have a value of ``columns`` that does not say its zone. Reads what makes up the newest
    version of the log. Raises what `LogFiles.of` does."""
    live: dict[str, Mapping[str, str | None] | None] = {}
    for path in LogFiles.of(location.filesystem, f"{location.root}/{LOG}").newest():
        live.update(_values(location.filesystem, path))
    found = (values for values in live.values() if values)
    return sum(any(_is_silent(values.get(name)) for name in columns) for values in found)


def _is_silent(text: str | None) -> bool:
    """An offset is as good as ``Z``, and comes after the time; before it, a dash is one of the date."""
    return text is not None and text[-1:] not in ("", "Z") and not any(sign in text[10:] for sign in "+-")


def _values(filesystem: pafs.FileSystem, path: str) -> Iterator[tuple[str, Mapping[str, str | None] | None]]:
    """(file, its partition values; None for one that is removed), in the order of the log."""
    if path.endswith(".parquet"):
        with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as checkpoint:
            for batch in checkpoint.iter_batches(columns=["add.path", "add.partitionValues"]):
                for add in batch.column("add").drop_null().to_pylist():
                    yield add["path"], dict(add["partitionValues"] or ())
        return
    with filesystem.open_input_stream(path) as stream:
        actions: list[dict[str, Any]] = [json.loads(line) for line in stream.read().splitlines() if line]
    for action in actions:
        if "remove" in action:
            yield action["remove"]["path"], None
        if "add" in action:
            yield action["add"]["path"], action["add"].get("partitionValues")
