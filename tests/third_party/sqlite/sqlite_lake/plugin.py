"""Rounds into tables of SQLite. A round's rows are upserted first, and its watermark follows in a transaction of its
own: a replay in between writes the same rows under the same keys again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from laketier import kit, spi
from laketier.kit import durable
from laketier.kit.staged import check_staged, discard_staged, refuse_published, remove, remove_files, replaced_files
from laketier.registry import hookimpl
from sqlite_lake.catalog import FEATURES, FORMAT, Catalog, State, look_up, quoted
from sqlite_lake.values import to_arrow, to_sql

ROWS_PER_BATCH = 65_536
_NAME = re.compile(r"([0-9a-f]{32})\.arrow")


def attempt_of(path: str) -> str | None:
    match = _NAME.fullmatch(path)
    return match[1] if match else None


class Writer(spi.LakeWriter[spi.WriteResult]):
    """Stages a file of Arrow; the driver reads it into the database."""

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        self._table, self._attempt, self._rows = table, attempt, 0
        self._path = Path(table.location) / f"{attempt}.arrow"
        self._file: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch := kit.conform(batch, self._table.schema)):
            self._file = self._file or pa.ipc.new_file(str(self._path), self._table.schema)
            self._file.write_batch(batch)
            self._rows += len(batch)

    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return spi.WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        durable.fsync_file(self._path)
        durable.fsync_directory(self._path.parent)
        file = spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))

    def abort(self) -> None:
        self._path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Committer(spi.LakeCommitter[spi.WriteResult]):
    catalog: Catalog
    table: spi.TableInfo
    context: spi.CommitterInitContext

    @property
    def folder(self) -> kit.TableFolder:
        return kit.TableFolder.at(self.table.location)

    def open(self) -> State:
        return self.catalog.state(self.table.path)

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, State)
        check_staged(self.folder, results, attempt_of=attempt_of, where=self.table.location)
        files = [file for result in results for file in result.files]
        self._upsert(state, results)
        kit.failpoint("publish.after_rows_before_watermark")
        with self.catalog.database.connected(write=True) as sql:
            version = self._unchanged(sql, state) + 1
            if not self._is_claimed(sql, state):
                raise spi.Conflict("another round has put its rows in the place of these", where=str(state.info.path))
            if watermark is not None:
                text = watermark.carried_by(version).to_json()
                row = (state.table_uuid, watermark.token.pipeline, text)
                sql.execute("INSERT OR REPLACE INTO laketier_watermark VALUES (?, ?, ?)", row)
            # With the files that it took rows from: whoever dies before they are deleted leaves them to be named again.
            named = [self.context.commit_id, *(file.path for file in files)]
            commits = [(state.table_uuid, each, version) for each in named]
            sql.executemany("INSERT INTO laketier_commit VALUES (?, ?, ?)", commits)
            sql.execute("UPDATE laketier_table SET version = ? WHERE uuid = ?", (version, state.table_uuid))
        remove(self.folder, [file.path for file in files])
        rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
        return spi.LakeCommitResult(snapshot_id=version, rows=rows, files=len(files), bytes=size)

    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        delete = partial(remove, self.folder)
        where = self.table.location
        discard_staged(results, attempt_of=attempt_of, where=where, published=lambda _: (), delete=delete)

    def storage_time(self) -> int:
        return spi.time_of_storage(pafs.LocalFileSystem(), self.table.location)

    def _unchanged(self, sql: Any, state: State) -> int:
        try:
            found = look_up(sql, self.catalog.warehouse, state.info.path)
        except spi.TableNotFound as error:
            raise spi.Conflict("the table was dropped", where=str(state.info.path)) from error
        if (found.table_uuid, found.snapshot_id) != (state.table_uuid, state.snapshot_id):
            raise spi.Conflict("another commit came first", where=str(state.info.path))
        return state.info.snapshot_id or 0

    def _upsert(self, state: State, results: Sequence[spi.WriteResult]) -> None:
        """The rows are those of the next version, whoever makes it: rows that a round left half done there give way."""
        table, schema = quoted(str(state.info.path)), state.info.schema
        columns = ", ".join([*map(quoted, schema.names), "_version", "_row", "_file"])
        statement = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({', '.join('?' * (len(schema.names) + 3))})"
        with self.catalog.database.connected(write=True) as sql:
            version = self._unchanged(sql, state) + 1
            self._refuse_named(sql, state, results)
            if self._is_claimed(sql, state):
                return  # by an earlier try of this very commit
            if any(result.replaced for result in results):
                live = {name for (name,) in sql.execute(f"SELECT DISTINCT _file FROM {table}")}
                gone = [(name,) for name in replaced_files(results, live, where=str(state.info.path))]
                sql.executemany(f"DELETE FROM {table} WHERE _file = ?", gone)
            if not state.info.descriptor.primary_key:
                sql.execute(f"DELETE FROM {table} WHERE _version = ?", (version,))
            count = 0
            for path in [file.path for result in results for file in result.files]:
                with pa.ipc.open_file(str(Path(self.table.location) / path)) as staged:
                    for batch in map(staged.get_batch, range(staged.num_record_batches)):
                        values = [to_sql(column) for column in batch.columns]
                        own = [[version] * len(batch), range(count, count + len(batch)), [path] * len(batch)]
                        sql.executemany(statement, zip(*values, *own, strict=True))
                        count += len(batch)
            claim = (self._claim(state), state.table_uuid)
            sql.execute("UPDATE laketier_table SET claim = ? WHERE uuid = ?", claim)

    def _refuse_named(self, sql: Any, state: State, results: Sequence[spi.WriteResult]) -> None:
        query = "SELECT 1 FROM laketier_commit WHERE uuid = ? AND commit_id = ?"
        paths = [file.path for result in results for file in result.files]
        named = {path for path in paths if sql.execute(query, (state.table_uuid, path)).fetchone()}
        refuse_published(paths, named, where=str(state.info.path))

    def _claim(self, state: State) -> str:
        return f"{state.snapshot_id}/{self.context.commit_id}"

    def _is_claimed(self, sql: Any, state: State) -> bool:
        """Whether the rows of the next version are those of this commit."""
        query = "SELECT 1 FROM laketier_table WHERE uuid = ? AND claim = ?"
        return sql.execute(query, (state.table_uuid, self._claim(state))).fetchone() is not None


@dataclass(frozen=True)
class Factory(spi.LakeTieringFactory[spi.WriteResult]):
    catalog: Catalog
    table: spi.TableInfo

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        spi.require_mode(FORMAT, FEATURES, context.mode)
        return Writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        spi.require_mode(FORMAT, FEATURES, context.mode)
        return Committer(self.catalog, self.table, context)


@dataclass(frozen=True)
class Part:
    """``version``: of the table. ``file``: only the rows that were staged in it; None for all."""

    version: int
    file: str | None = None


@dataclass(frozen=True)
class Source(spi.LakeSource):
    """Reads the table as it was when it was planned, or refuses. A table with a primary key has a split for the rows of
    each staged file, so that a round can replace these."""

    split_payload: ClassVar[type] = Part
    catalog: Catalog
    table: spi.TableInfo

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.snapshot_id is not None:
            spi.require(FORMAT, FEATURES, spi.Feature.TIME_TRAVEL)
        if request.as_of is not None:
            spi.require(FORMAT, FEATURES, spi.Feature.TIME_TRAVEL_BY_TIMESTAMP)
        seen = request.seen(State)
        info = self.catalog.load_table(self.table.path) if seen is None else seen.info
        schema = request.projected(info.schema, where=str(info.path))
        version, keyed = info.snapshot_id or 0, bool(info.descriptor.primary_key)
        name = quoted(str(info.path))
        parts: list[tuple[int, tuple[str, ...], Part]]
        with self.catalog.database.connected() as sql:
            if keyed:
                counts = sql.execute(f"SELECT _file, count(*) FROM {name} GROUP BY _file ORDER BY _file")
                parts = [(rows, (file,), Part(version, file)) for file, rows in counts]
            else:
                (rows,) = sql.execute(f"SELECT count(*) FROM {name}").fetchone()
                parts = [(rows, (), Part(version))] if rows else []
        splits = [
            spi.LakeSplit(index=index, rows=rows, files=files, payload=payload)
            for index, (rows, files, payload) in enumerate(parts)
        ]
        return spi.ScanPlan(snapshot_id=version, schema=schema, splits=tuple(splits), remaining=request.filters)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names, part, last = [*map(quoted, schema.names), "_row"], split.payload, 0
        of_file = "" if part.file is None else " AND _file = :file"
        while True:
            # No transaction is open while the reader has the rows: a commit would wait for it.
            with self.catalog.database.connected() as sql:
                found = look_up(sql, self.catalog.warehouse, self.table.path)
                if (found.table_uuid, found.snapshot_id) != (self.table.table_uuid, part.version):
                    raise spi.SnapshotNotFound(
                        "the table has changed since the scan was planned", where=str(found.path)
                    )
                taken = {name.lower() for name in found.schema.names}
                place = next(each for each in ("rowid", "oid", "_rowid_") if each not in taken)
                query = f"SELECT {', '.join(names)}, {place} FROM {quoted(str(self.table.path))} WHERE {place} > :last"
                parameters = {"file": part.file, "last": last, "most": ROWS_PER_BATCH}
                rows = sql.execute(f"{query}{of_file} ORDER BY {place} LIMIT :most", parameters).fetchall()
            if not rows:
                return
            *columns, numbers, places = zip(*rows, strict=True)
            last = places[-1]
            arrays = [to_arrow(values, field.type) for values, field in zip(columns, schema, strict=True)]
            if arrays:
                yield pa.record_batch(arrays, schema=schema)
            else:
                yield pa.record_batch([pa.array(numbers)], names=["_row"]).select([])


@dataclass(frozen=True)
class Maintenance(spi.LakeMaintenance):
    """Whatever is staged and old is an orphan: a table needs no staged file."""

    folder: kit.TableFolder

    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return [
            spi.OrphanFile(file.path, file.bytes, file.modified_at, attempt=attempt_of(file.path))
            for file in self.folder.files()
            if file.modified_at < modified_before and attempt_of(file.path)
        ]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        return remove_files(self.folder, orphans)


@dataclass(frozen=True)
class Storage(spi.LakeStorage):
    warehouse: Path

    def catalog(self) -> Catalog:
        return Catalog(self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(self.catalog(), table)

    def source(self, table: spi.TableInfo) -> Source:
        return Source(self.catalog(), table)

    def state(self, table: spi.TableInfo) -> State:
        return self.catalog().state(table.path)

    def maintenance(self, table: spi.TableInfo) -> Maintenance:
        return Maintenance(kit.TableFolder.at(table.location))


class SqlitePlugin(spi.LakeStoragePlugin):
    identifier, spi_version = "sqlite", 3
    delivery, features = spi.DeliveryLevel.IDEMPOTENT_UPSERT, FEATURES

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return Storage(kit.warehouse_folder(config.warehouse, format=FORMAT, features=FEATURES))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return SqlitePlugin()
