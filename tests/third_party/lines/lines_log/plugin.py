"""The plugin: `laketier.spi.LogSource` over folders of ``<bucket>.jsonl`` files. See the README for the layout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.looks import is_folder, is_there, names_in
from laketier.registry import hookimpl
from laketier.spi import (
    BadRecord,
    BucketBounds,
    BucketSpec,
    ConfigError,
    FindUnstorable,
    LogRange,
    LogSource,
    LogSourceConfig,
    LogSourcePlugin,
    LogSplit,
    LogTable,
    OffsetsExpired,
    OnBadRecord,
    StorageError,
    TableLog,
    TableNotFound,
    fail_on_bad_record,
    option,
)

_BATCH_LINES = 10_000


@dataclass(frozen=True)
class LinesOptions:
    """Where the logs are."""

    path: str = option("", "The folder of the tables' folders.")


@dataclass(frozen=True)
class LinesLog(TableLog):
    """One folder. Only whole lines count: a line that is being written has no end yet."""

    folder: Path
    described: LogTable

    @property
    def table(self) -> LogTable:
        return self.described

    def bounds(self) -> Mapping[str, BucketBounds]:
        expired = _describe(self.folder).get("expired", {})
        found = {}
        for path in sorted(self.folder / name for name in names_in(self.folder) if name.endswith(".jsonl")):
            with path.open("rb") as file:
                lines = sum(1 for line in file if line.endswith(b"\n"))
            found[path.stem] = BucketBounds(expired.get(path.stem, 0), lines, int(os.stat(path).st_mtime * 1000))
        return found

    def identify(self) -> str:
        """The folder of this name may be that of another table by now."""
        try:
            return str(_describe(self.folder)["id"])
        except FileNotFoundError as error:
            if not is_folder(self.folder.parent):
                raise StorageError("the logs are not there", where=str(self.folder.parent)) from error
            raise TableNotFound(f"there is no table {self.folder.name!r} any more", where=str(self.folder)) from error

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [LogSplit(bucket=bucket, start=start, end=end) for bucket, (start, end) in wanted.by_bucket.items()]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        schema = self.described.schema
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        for rows, _ in self._blocks(split, on_bad_record):
            yield rows.select(wanted.names)

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for rows, records in self._blocks(split, on_bad_record):
            found = find_unstorable(rows)
            for at, error in found.items():
                on_bad_record(replace(records[at], error=error))
            yield rows.filter(pa.array([at not in found for at in range(rows.num_rows)]))

    def _blocks(self, split: LogSplit, on_bad_record: OnBadRecord) -> Iterator[tuple[pa.RecordBatch, list[BadRecord]]]:
        """Rows, and for each the record that it came from."""
        expired = _describe(self.folder).get("expired", {}).get(split.bucket, 0)
        if split.start < expired:
            raise OffsetsExpired(f"offsets below {expired} expired", where=f"{self.folder}/{split.bucket}")
        schema, offset, text = self.described.schema, split.start, _takes_text(self.folder)
        with (self.folder / f"{split.bucket}.jsonl").open("rb") as file:
            lines = islice(file, split.start, split.end)
            while block := list(islice(lines, _BATCH_LINES)):
                rows = _rows(block, schema, split.bucket, offset, on_bad_record, text)
                offset += len(block)
                if rows:
                    batch = pa.RecordBatch.from_pylist([row for row, _ in rows], schema=schema)
                    yield batch, [record for _, record in rows]
        if offset < split.end:
            raise StorageError(f"the log ends at {offset}, before {split.end}", where=str(self.folder))

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        schema, text = self.described.schema, _takes_text(self.folder)
        for record in records:
            rows = _rows([record.value or b""], schema, record.bucket, record.offset, on_bad_record, text)
            if rows:
                yield pa.RecordBatch.from_pylist([row for row, _ in rows], schema=schema)


def _rows(
    lines: list[bytes], schema: pa.Schema, bucket: str, offset: int, on_bad_record: OnBadRecord, text: bool
) -> list[tuple[dict[str, Any], BadRecord]]:
    """The rows of lines, each with its record, should it turn out to be bad."""
    rows = []
    for number, line in enumerate(lines, offset):
        record = BadRecord(bucket=bucket, offset=number, error="", value=line.rstrip(b"\n"))
        try:
            row = json.loads(line)
            if text:
                row["id"] = int(row["id"])
            for name in schema.names:  # pyarrow makes 3 of 3.5
                if pa.types.is_integer(schema.field(name).type) and isinstance(row.get(name), float):
                    raise ValueError(f"{name} is {row[name]}, and no integer")
            pa.RecordBatch.from_pylist([row], schema=schema)
        except (ValueError, TypeError, AttributeError, KeyError, pa.ArrowException) as error:
            on_bad_record(replace(record, error=str(error)))
        else:
            rows.append((row, record))
    return rows


class LinesSource(LogSource):
    """All folders below the root that hold a ``table.json``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list_tables(self) -> Sequence[str]:
        return sorted(name for name in names_in(self._root) if is_there(self._root / name / "table.json"))

    def open(self, name: str, options: Any) -> TableLog:
        folder = self._root / name
        if name not in names_in(self._root) or not is_there(folder / "table.json"):  # "t/" is no name
            raise TableNotFound(f"there is no table {name!r}", where=str(self._root))
        described = _describe(folder)
        schema = pa.schema([(column, pa.type_for_alias(kind)) for column, kind in described["columns"].items()])
        key = tuple(described.get("primary_key", ()))
        table = LogTable(
            name,
            described["id"],
            schema,
            buckets=_buckets(**described["buckets"]) if "buckets" in described else None,
            primary_key=key,
            change_column=described.get("change_column"),
            former_names={now: tuple(old) for now, old in described.get("former_names", {}).items()},
        )
        return LinesLog(folder, table)


def _takes_text(folder: Path) -> bool:
    """Whether an id may be a number in quotes: ``"ids_as_text": true``."""
    return bool(_describe(folder).get("ids_as_text", False))


def _describe(folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    return described


def _buckets(count: int, keys: list[str], function: str) -> BucketSpec:
    return BucketSpec(count, tuple(keys), function)


class LinesPlugin(LogSourcePlugin):
    """``type: lines``."""

    identifier = "lines"
    spi_version = 2
    options_type = LinesOptions

    def create_source(self, config: LogSourceConfig) -> LogSource:
        root = Path(config.options.path)
        if not config.options.path or not is_folder(root):
            raise ConfigError(f"{str(root)!r} is not a folder", where=config.name, fix="Set options.path.")
        return LinesSource(root)


@hookimpl
def laketier_source() -> LogSourcePlugin:
    return LinesPlugin()
