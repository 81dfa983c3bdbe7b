"""Reading a dataset: fragments of one version, as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from laketier.kit.many_objects import making_many_objects
from laketier.spi import (
    CorruptTable,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    TableInfo,
)
from laketier_lance.changes import shaped
from laketier_lance.dataset import lance_errors, open_dataset, reason, unreadable
from laketier_lance.filters import to_sql
from laketier_lance.fragments import FragmentRun, fragments_of, grouped, last_of
from laketier_lance.history import committed_at
from laketier_lance.options import LanceOptions
from laketier_lance.state import LanceTableState
from laketier_lance.versions import versions_of

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment


@dataclass(frozen=True)
class LanceSource(LakeSource):
    """Splits are runs of fragments at one version. Deleted rows never show. Opens the dataset inside `read`."""

    split_payload: ClassVar[type] = FragmentRun

    table: TableInfo
    options: LanceOptions

    @making_many_objects()
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
        for group in grouped(fragments_of(dataset.get_fragments()), self.options.split_rows):
            if counted and limit == 0:
                break
            rows = sum(fragment.rows for fragment in group)
            share = limit
            if counted and limit is not None:
                share = rows = min(limit, rows)
                limit -= share
            payload = FragmentRun.of(group, int(dataset.version), condition)
            size = sum(fragment.bytes for fragment in group)
            whole_group = not condition and rows == sum(fragment.rows for fragment in group)
            splits.append(
                LakeSplit(
                    index=len(splits),
                    rows=None if condition else rows,
                    bytes=size,
                    files=tuple(str(fragment.id) for fragment in group) if whole_group else (),
                    limit=share,
                    payload=payload,
                )
            )
        return ScanPlan(
            snapshot_id=dataset.version,
            schema=schema,
            splits=tuple(splits),
            remaining=remaining,
        )

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        run: FragmentRun = split.payload
        dataset = open_dataset(self.table.location, self.options.storage_options(), run.version)
        fragments = [self._fragment(dataset, number) for number in run.fragments]
        if run.file and last_of(fragments[-1].metadata.files) != run.file:
            raise SnapshotNotFound(
                f"version {run.version} is that of another table by now",
                where=self.table.location,
                why="the table was made again, or put back from a backup, after the read was planned",
                fix="Read again.",
            )
        then = run.names_then
        columns = [old for name in schema.names if (old := then.get(name, name)) is not None]
        try:
            scanner = dataset.scanner(
                columns=columns,
                filter=run.condition or None,
                limit=split.limit,
                batch_size=run.batch_rows,
                fragments=fragments,
                scan_in_order=True,
                # A scan of no columns at all is refused; the row id is there without being read.
                with_row_id=not columns,
                blob_handling="all_binary",  # else a column of blobs gives where they lie, in place of the bytes
            )
            for batch in scanner.to_batches():
                if then:
                    yield shaped(batch, schema, then)
                elif len(schema) == 0:
                    yield batch.select([]).replace_schema_metadata(None)
                elif batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except lance_errors() as error:
            if "not found" in reason(error).lower():
                raise CorruptTable(
                    f"a data file of version {run.version} is missing",
                    where=self.table.location,
                    why=reason(error),
                    fix="Read a newer version.",
                ) from error
            raise unreadable(self.table.location, error) from error

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
        """The newest version committed at ``moment`` or before: versions are in order, so by bisection. Between a
        version and the next one that is left, as tags keep some while those after them are cleaned up, nobody knows
        which it was."""
        storage = self.options.storage_options()
        versions = versions_of(dataset)
        low, high, found_at = 0, len(versions), moment
        while low < high:
            middle = (low + high) // 2
            at = committed_at(self.table.location, storage, versions[middle])
            if at <= moment:
                low, found_at = middle + 1, at
            else:
                high = middle
        if low == 0:
            raise SnapshotNotFound(
                f"no version is as old as {moment} ms",
                where=str(self.table.path),
                fix="`laketier history` lists the versions that can be read.",
            )
        found, after = versions[low - 1], versions[low] if low < len(versions) else None
        if after not in (None, found + 1) and found_at < moment:
            raise SnapshotNotFound(
                f"it is not known which version the table had at {moment} ms",
                where=str(self.table.path),
                why=f"the versions between {found} and {after} are gone",
                fix="`laketier history` lists the versions that can be read.",
            )
        return found
