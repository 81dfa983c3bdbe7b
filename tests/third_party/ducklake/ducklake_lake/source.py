"""Reading: a split has the rows of one file, or those in the catalog, where DuckDB puts small inserts."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import duckdb
import pyarrow as pa

from ducklake_lake.features import FEATURES
from ducklake_lake.library import Lake, quoted
from ducklake_lake.rounds import State
from ducklake_lake.table import Version, at, found, load, load_newest, look_up
from laketier import kit, spi

PAGE_ROWS = 65_536
OF_SQLITE = {"unable to open database file", "disk I/O error", "database is locked"}
REFUSALS = OF_SQLITE | {os.strerror(number) for number in errno.errorcode if number != errno.ENOENT}
"""What is said of a file that can't be looked at now; one that is not there is damage."""


@contextmanager
def naming_damaged_files(where: str) -> Iterator[None]:
    """Tell of a data file that DuckDB can't read."""
    try:
        yield
    except (duckdb.InterruptException, duckdb.OutOfMemoryException, duckdb.TransactionException):
        raise
    except duckdb.Error as error:  # its reader of Parquet has many for damage, some of them of no kind
        why = str(error).splitlines()[0]
        if why.rpartition(": ")[2] in REFUSALS:
            raise spi.StorageError("a data file could not be looked at", where=where, why=why) from error
        raise spi.CorruptTable("a data file can't be read", where=where, why=why) from error


@dataclass(frozen=True)
class Place:
    """What `read` needs. ``first`` and ``last``: numbers of rows, which they keep when a merge puts another file in the
    place of theirs, also in the snapshots that there are."""

    snapshot: int
    filename: str
    rows: int
    first: int
    last: int


@dataclass(frozen=True)
class Source(spi.LakeSource):
    """Filters and limits are left to the reader. DuckDB reads, so deleted rows, renamed columns and files that another
    tool merged are its matter. Picklable: plain data."""

    split_payload: ClassVar[type] = Place

    table: spi.TableInfo
    lake: Lake

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None:
            spi.require("ducklake", FEATURES, spi.Feature.TIME_TRAVEL_BY_TIMESTAMP)
        version = self._version(request)
        with (
            found(self.lake, self.table.path),
            self.lake.transaction() as session,
            naming_damaged_files(self.table.location),
        ):
            rows = at(session, self.table.path, version.number)
            counted = session.run(
                f"SELECT filename, count(*), min(rowid), max(rowid) FROM {rows} GROUP BY 1 ORDER BY 1"
            )
        splits = [
            spi.LakeSplit(index=index, rows=count, payload=Place(version.number, filename, count, *ends))
            for index, (filename, count, *ends) in enumerate(counted)
        ]
        return spi.ScanPlan(
            snapshot_id=version.number,
            schema=request.projected(version.schema, where=self.table.location),
            splits=tuple(splits),
            remaining=request.filters,
        )

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        place, first = split.payload, split.payload.first
        while first <= place.last:
            batches, first = self._page(place, first, schema)
            for batch in batches:
                yield kit.conform(batch, schema)

    def _page(self, place: Place, first: int, schema: pa.Schema) -> tuple[list[pa.RecordBatch], int]:
        """Rows from the number ``first`` on, and the number to go on with. A transaction for each page, which has ended
        before its rows are handed over: who takes them may wait for hours, and SQLite's log would grow meanwhile."""
        columns = ", ".join(map(quoted, schema.names)) or "filename"
        with found(self.lake, self.table.path), self.lake.transaction() as session:
            if (there := look_up(session, self.table.path, place.snapshot)) is None or there[0] != self._identity:
                raise self._expired(place.snapshot)
            rows = f"FROM {at(session, self.table.path, place.snapshot)}"
            which, values = "filename = ?", [place.filename]
            with naming_damaged_files(place.filename):
                if not session.run(f"SELECT 1 {rows} WHERE filename = ? LIMIT 1", values):
                    which, values = "rowid BETWEEN ? AND ?", [place.first, place.last]
                    if session.run(f"SELECT count(*) {rows} WHERE {which}", values) != [(place.rows,)]:
                        raise self._expired(place.snapshot, "its files were merged")
                following = first + PAGE_ROWS
                query = f"SELECT {columns} {rows} WHERE {which} AND rowid >= ? AND rowid < ?"
                reader = session.cursor.execute(query, [*values, first, following]).to_arrow_reader(PAGE_ROWS)
                page = [batch.select(schema.names) for batch in reader if len(batch)]
                if not page:  # numbers of rows have gaps, of any size
                    query = f"SELECT min(rowid) {rows} WHERE {which} AND rowid >= ?"
                    ((found_at,),) = session.run(query, [*values, following])
                    following = place.last + 1 if found_at is None else found_at
                return page, following

    @property
    def _identity(self) -> str:
        return self.table.table_uuid

    def _version(self, request: spi.ScanRequest) -> Version:
        if (seen := request.seen(State)) is not None:
            return seen.version
        if request.snapshot_id is None:
            return load_newest(self.lake, self.table.path)
        with found(self.lake, self.table.path), self.lake.transaction() as session:
            version = load(session, self.table.path, request.snapshot_id)
        if version is None or version.identity != self._identity:
            raise self._expired(request.snapshot_id)
        return version

    def _expired(self, number: int, why: str = "it never was, or it has expired") -> spi.SnapshotNotFound:
        return spi.SnapshotNotFound(
            f"there is no snapshot {number} of {self.table.path}",
            where=str(self.lake.file),
            why=why,
        )
