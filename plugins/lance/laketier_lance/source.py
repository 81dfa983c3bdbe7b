"""Reading a dataset: fragments of one version, as Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.spi import (
    CorruptTable,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotInfo,
    SnapshotNotFound,
    TableInfo,
    VersionBounds,
)
from laketier_lance.changes import COLUMNS, appended, bounds, names_at, names_then, shaped
from laketier_lance.dataset import LANCE_ERRORS, open_dataset, read_transaction, reason, unreadable
from laketier_lance.filters import to_sql
from laketier_lance.options import LanceOptions
from laketier_lance.state import LanceTableState
from laketier_lance.table import EPOCH, PIPELINE, ROWS

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment

_SPLIT_BYTES = 128 * 1024**2
_FEW_FRAGMENTS = 16
_BATCH_BYTES = 32 * 1024**2
_LARGEST_BATCH = 65_536
_SMALLEST_BATCH = 1_024


@dataclass(frozen=True)
class LanceSource(LakeSource):
    """Splits are runs of fragments at one version. Deleted rows never show. Opens the dataset inside `read`."""

    table: TableInfo
    options: LanceOptions

    def plan(self, request: ScanRequest) -> ScanPlan:
        dataset = self._dataset_for(request)
        whole: pa.Schema = dataset.schema.remove_metadata()
        schema = request.projected(whole, where=str(self.table.path))
        taken = [(predicate, to_sql(predicate, whole)) for predicate in request.filters]
        remaining = tuple(predicate for predicate, sql in taken if sql is None)
        condition = " AND ".join(f"({sql})" for _, sql in taken if sql is not None)
        # A limit comes after all filters: it waits for those that the reader applies, and it says how many fragments
        # are needed only where there are none.
        limit = None if remaining else request.limit
        counted = limit is not None and not request.filters
        splits: list[LakeSplit] = []
        for group in _grouped(_fragments(dataset.get_fragments()), self.options.split_rows):
            if counted and limit == 0:
                break
            rows = sum(fragment.rows for fragment in group)
            share = limit
            if counted and limit is not None:
                share = rows = min(limit, rows)
                limit -= share
            payload = {
                "version": str(dataset.version),
                "fragments": json.dumps([fragment.id for fragment in group]),
                "filter": condition,
                "limit": "" if share is None else str(share),
                "batch_rows": str(_batch_rows(group)),
            }
            size = sum(fragment.bytes for fragment in group)
            whole_group = not condition and rows == sum(fragment.rows for fragment in group)
            splits.append(
                LakeSplit(
                    index=len(splits),
                    rows=None if condition else rows,
                    bytes=size,
                    files=tuple(str(fragment.id) for fragment in group) if whole_group else (),
                    payload=payload,
                )
            )
        return ScanPlan(
            snapshot_id=dataset.version,
            schema=schema,
            splits=tuple(splits),
            remaining=remaining,
            limit_done=counted,
        )

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        payload = split.payload
        dataset = open_dataset(self.table.location, self.options.storage_options(), int(payload["version"]))
        fragments = [self._fragment(dataset, number) for number in json.loads(payload["fragments"])]
        then = names_then(payload)
        columns = [old for name in schema.names if (old := then.get(name, name)) is not None]
        scanner = dataset.scanner(
            columns=columns,
            filter=payload["filter"] or None,
            limit=int(payload["limit"]) if payload["limit"] else None,
            batch_size=int(payload["batch_rows"]),
            fragments=fragments,
            scan_in_order=True,
            # A scan of no columns at all is refused; the row id is there without being read.
            with_row_id=not columns,
        )
        try:
            for batch in scanner.to_batches():
                if then:
                    yield shaped(batch, schema, then)
                elif len(schema) == 0:
                    yield batch.select([]).replace_schema_metadata(None)
                elif batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except LANCE_ERRORS as error:
            if "not found" in reason(error).lower():
                raise CorruptTable(
                    f"a data file of version {payload['version']} is missing",
                    where=self.table.location,
                    why=reason(error),
                    fix="Read a newer version.",
                ) from error
            raise unreadable(self.table.location, error) from error

    def history(self, limit: int) -> list[SnapshotInfo]:
        dataset = open_dataset(self.table.location, self.options.storage_options())
        found = []
        for version in sorted((ref["version"] for ref in dataset.version_refs()), reverse=True)[:limit]:
            transaction = read_transaction(dataset, version)
            properties = (transaction.transaction_properties if transaction is not None else None) or {}
            operation = "unknown" if transaction is None else type(transaction.operation).__name__.lower()
            found.append(
                SnapshotInfo(
                    snapshot_id=version,
                    committed_at=self._committed_at(version),
                    operation=operation,
                    rows=_integer(properties.get(ROWS)),
                    pipeline=properties.get(PIPELINE),
                    epoch=_integer(properties.get(EPOCH)),
                )
            )
        return found

    def versions(self) -> VersionBounds:
        return bounds(self.table.location, self.options.storage_options())

    def plan_changes(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        location, storage = self.table.location, self.options.storage_options()
        newest = open_dataset(location, storage)
        splits: list[LakeSplit] = []
        for each in appended(newest, location, storage, start, end, skip_changes=skip_changes):
            then = names_at(each.dataset, newest)
            for group in _grouped(_fragments(each.fragments), self.options.split_rows):
                payload = {
                    "version": str(each.version),
                    "fragments": json.dumps([fragment.id for fragment in group]),
                    "filter": "",
                    "limit": "",
                    "batch_rows": str(_batch_rows(group)),
                } | ({COLUMNS: json.dumps(then)} if then else {})
                rows, size = sum(fragment.rows for fragment in group), sum(fragment.bytes for fragment in group)
                splits.append(LakeSplit(index=len(splits), rows=rows, bytes=size, payload=payload))
        return ScanPlan(snapshot_id=end - 1, schema=newest.schema.remove_metadata(), splits=tuple(splits))

    def _committed_at(self, version: int) -> int:
        dataset = open_dataset(self.table.location, self.options.storage_options(), version)
        moment: datetime = dataset.get_version()["timestamp"]  # type: ignore[assignment] # never the int that its type allows
        return int(moment.timestamp() * 1000)

    def _fragment(self, dataset: LanceDataset, number: int) -> LanceFragment:
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise CorruptTable(f"version {dataset.version} has no fragment {number}", where=self.table.location)
        return fragment

    def _dataset_for(self, request: ScanRequest) -> LanceDataset:
        if (seen := request.seen(LanceTableState)) is not None:
            return seen.dataset
        storage = self.options.storage_options()
        if request.snapshot_id is not None:
            return open_dataset(self.table.location, storage, request.snapshot_id)
        dataset = open_dataset(self.table.location, storage)
        if request.as_of is None:
            return dataset
        return open_dataset(self.table.location, storage, self._version_at(dataset, request.as_of))

    def _version_at(self, dataset: LanceDataset, moment: int) -> int:
        """The newest version committed at ``moment`` or before: versions are in order, so by bisection."""
        versions = sorted(ref["version"] for ref in dataset.version_refs())
        low, high = 0, len(versions)
        while low < high:
            middle = (low + high) // 2
            if self._committed_at(versions[middle]) <= moment:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            raise SnapshotNotFound(
                f"no version is as old as {moment} ms",
                where=str(self.table.path),
                fix="`laketier history` lists the versions that can be read.",
            )
        return int(versions[low - 1])


@dataclass(frozen=True)
class _Fragment:
    id: int
    rows: int
    bytes: int


def _fragments(fragments: Iterable[LanceFragment]) -> list[_Fragment]:
    found = []
    for fragment in fragments:
        metadata = fragment.metadata
        size = sum(file.file_size_bytes or 0 for file in metadata.files)
        if metadata.num_rows:
            found.append(_Fragment(fragment.fragment_id, metadata.num_rows, size))
    return found


def _grouped(fragments: list[_Fragment], most_rows: int) -> list[list[_Fragment]]:
    """Runs of fragments: one each while they are few, as each gives a task its work; small ones together after."""
    if len(fragments) <= _FEW_FRAGMENTS:
        return [[fragment] for fragment in fragments]
    groups: list[list[_Fragment]] = []
    rows = size = 0
    for fragment in fragments:
        if not groups or rows + fragment.rows > most_rows or size + fragment.bytes > _SPLIT_BYTES:
            groups.append([])
            rows = size = 0
        groups[-1].append(fragment)
        rows += fragment.rows
        size += fragment.bytes
    return groups


def _batch_rows(group: list[_Fragment]) -> int:
    """Rows per batch such that wide rows, vectors above all, don't make batches of gigabytes."""
    rows = sum(fragment.rows for fragment in group)
    width = sum(fragment.bytes for fragment in group) // max(rows, 1)
    return max(_SMALLEST_BATCH, min(_LARGEST_BATCH, _BATCH_BYTES // max(width, 1)))


def _integer(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() else None
