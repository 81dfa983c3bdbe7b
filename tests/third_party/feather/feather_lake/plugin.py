"""Feather files, and a numbered chain of small JSON manifests that name them."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from laketier import kit, spi
from laketier.kit import durable, staged
from laketier.registry import hookimpl

ABILITIES = ("overwrite", "add-column", "widen-type", "drop-table", "time-travel", "nested-types", "vectors")
FEATURES = {
    feature: spi.FULL if feature.value in ABILITIES else spi.unsupported("the format is kept small")
    for feature in spi.Feature
}


@dataclass(frozen=True)
class Manifest(spi.TableState):
    """One snapshot. ``home`` is the folder of this incarnation of the table, so a recreated one has another."""

    home: str
    number: int
    schema_ipc: bytes
    commit: str = ""
    files: tuple[tuple[str, int, int], ...] = ()
    watermarks: tuple[tuple[str, str], ...] = ()

    table_uuid = property(lambda self: Path(self.home).name)
    schema = property(lambda self: pa.ipc.read_schema(pa.py_buffer(self.schema_ipc)))
    schema_fingerprint = property(lambda self: spi.schema_fingerprint(self.schema))
    spec_id = property(lambda self: 0)
    snapshot_id = property(lambda self: self.number)

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        text = dict(self.watermarks).get(pipeline)
        return None if text is None else spi.Watermark.from_json(text)

    def landed(self, commit_id: str) -> bool:
        return any(Manifest.read(self.home, n).commit == commit_id for n in range(self.number, 0, -1))

    def link(self) -> None:
        """Publish it: one writer can take a number."""
        path, document = Path(self.home) / f"{self.number:08}.json", {**spi.to_plain(self), "home": ""}
        try:
            durable.create_exclusively(path, json.dumps(document).encode())
        except FileExistsError as error:
            raise spi.Conflict(f"snapshot {self.number} is taken", where=self.home) from error

    @staticmethod
    def read(home: str, number: int | None = None) -> Manifest:
        """A manifest, the newest by default."""
        paths = {int(path.stem): path for path in Path(home).glob("*.json")}
        if not paths:
            raise spi.TableNotFound("the table was dropped", where=home)
        path = paths.get(max(paths) if number is None else number)
        if path is None:
            raise spi.SnapshotNotFound(f"there is no snapshot {number}", where=home)
        try:
            return replace(spi.from_plain(Manifest, json.loads(path.read_bytes())), home=home)
        except ValueError as error:
            raise spi.CorruptTable("a manifest is damaged", where=str(path), why=str(error)) from error


class Catalog(spi.LakeCatalog):
    """``<database>/<table>/table.json`` names the folder that holds the table."""

    def __init__(self, warehouse: str) -> None:
        self._warehouse = Path(warehouse)

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if descriptor.partition_by:
            refuse(spi.Feature.PARTITIONING)
        if descriptor.buckets or descriptor.primary_key:
            refuse(spi.Feature.BUCKETING if descriptor.buckets else spi.Feature.UPSERT)
        pointer = self._pointer(path)
        if not pointer.exists():
            home = pointer.parent / uuid.uuid4().hex
            durable.make_directories(home)
            Manifest(str(home), 0, descriptor.schema.remove_metadata().serialize().to_pybytes()).link()
            try:
                durable.create_exclusively(pointer, json.dumps(home.name).encode())
            except FileExistsError:
                shutil.rmtree(home)
        return spi.same_table(self.load_table(path), descriptor)

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        if not self._pointer(path).exists():
            raise spi.TableNotFound("there is no such table", where=str(path))
        head = Manifest.read(str(self._pointer(path).with_name(json.loads(self._pointer(path).read_bytes()))))
        table = spi.TableInfo(path, spi.TableDescriptor(head.schema), head.table_uuid, head.home, head.number)
        return table.with_handle(head)

    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        if any(isinstance(change, spi.RenameColumn) for change in changes):
            refuse(spi.Feature.RENAME_COLUMN)
        table = self.load_table(path)
        head = Manifest.read(table.location)
        schema = spi.reshaped(replace(table, descriptor=spi.TableDescriptor(head.schema)), changes)
        for field in (change.field for change in changes if isinstance(change, spi.AddColumn)):
            if field.name not in schema.names and field.nullable:
                schema = schema.append(field)
            elif field.name not in schema.names or not schema.field(field.name).equals(field):
                raise spi.IncompatibleTable(f"can't add the column {field}", where=str(path))
        if not schema.equals(head.schema):
            replace(head, number=head.number + 1, schema_ipc=schema.serialize().to_pybytes(), commit="").link()
        return self.load_table(path)

    def drop_table(self, path: spi.TablePath) -> None:
        home = self.load_table(path).location
        self._pointer(path).unlink()
        shutil.rmtree(home)

    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        return sorted(spi.TablePath(*p.parts[-3:-1]) for p in self._warehouse.glob(f"{database or '*'}/*/table.json"))

    def _pointer(self, path: spi.TablePath) -> Path:
        return self._warehouse / path.database / path.table / "table.json"


class Writer(spi.LakeWriter[spi.WriteResult]):
    """One file for one task attempt, named after it."""

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        self._table, self._attempt, self._rows = table, attempt, 0
        self._path = Path(table.location) / f"{attempt}.feather"
        self._file: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        if len(batch):
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


def attempt_of(path: str) -> str | None:
    """The attempt that wrote a file."""
    return path.removesuffix(".feather") if path.endswith(".feather") and "/" not in path else None


@dataclass(frozen=True)
class Committer(spi.LakeCommitter[spi.WriteResult]):
    """A round is the next manifest."""

    home: str
    context: spi.CommitterInitContext

    def open(self) -> Manifest:
        return Manifest.read(self.home)

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, Manifest)
        self.check(results)
        number, marks = state.number + 1, dict(state.watermarks)
        if watermark is not None:
            marks[watermark.token.pipeline] = watermark.carried_by(number).to_json()
        kept = () if self.context.mode is spi.WriteMode.OVERWRITE else state.files
        added = tuple((file.path, file.rows, file.bytes) for result in results for file in result.files)
        commit = replace(state, number=number, files=kept + added, watermarks=tuple(marks.items()))
        kit.failpoint("publish.before_link")
        replace(commit, commit=self.context.commit_id).link()
        rows, size = sum(result.rows for result in results), sum(result.bytes for result in results)
        return spi.LakeCommitResult(snapshot_id=number, rows=rows, files=len(added), bytes=size)

    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        staged.discard_staged(kit.TableFolder.at(self.home), results, attempt_of=attempt_of)

    def check(self, results: Sequence[spi.WriteResult]) -> None:
        """A table that lists a file which is not there, not whole, or there already, could not be read."""
        staged.check_staged(kit.TableFolder.at(self.home), results, attempt_of=attempt_of, where=self.home)


@dataclass(frozen=True)
class Factory(spi.LakeTieringFactory[spi.WriteResult]):
    """Holds the table's description, which is all that a writer needs."""

    table: spi.TableInfo

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        spi.require_mode("feather", FEATURES, context.mode)
        return Writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        spi.require_mode("feather", FEATURES, context.mode)
        return Committer(self.table.location, context)


@dataclass(frozen=True)
class Source(spi.LakeSource):
    """A split is a file. Filters and limits are left to the reader."""

    home: str

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None:
            refuse(spi.Feature.TIME_TRAVEL_BY_TIMESTAMP)
        snapshot = Manifest.read(self.home, request.snapshot_id)
        files = enumerate(snapshot.files)
        return spi.ScanPlan(
            snapshot_id=snapshot.number,
            schema=request.projected(snapshot.schema, where=self.home),
            splits=tuple(spi.LakeSplit(index=i, rows=rows, payload={"file": name}) for i, (name, rows, _) in files),
            remaining=request.filters,
        )

    def history(self, limit: int) -> list[spi.SnapshotInfo]:
        numbers = range(Manifest.read(self.home).number, -1, -1)[:limit]
        return [spi.SnapshotInfo(snapshot_id=n, committed_at=None, operation="commit") for n in numbers]

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_file(str(Path(self.home) / split.payload["file"])) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                yield kit.conform(batch.select([n for n in schema.names if n in batch.schema.names]), schema)


@dataclass(frozen=True)
class Storage(spi.LakeStorage):
    """A warehouse is a folder."""

    warehouse: str

    def catalog(self) -> Catalog:
        return Catalog(self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(table.with_handle(None))

    def source(self, table: spi.TableInfo) -> Source:
        return Source(table.location)

    def state(self, table: spi.TableInfo) -> Manifest:
        handle: Manifest | None = table.handle
        return handle or Manifest.read(table.location)


class FeatherPlugin(spi.LakeStoragePlugin):
    """The format."""

    identifier, spi_version = "feather", 2
    delivery, features = spi.DeliveryLevel.EXACTLY_ONCE, FEATURES

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        if "://" in config.warehouse:
            refuse(spi.Feature.OBJECT_STORES)
        return Storage(config.warehouse)


def refuse(feature: spi.Feature) -> None:
    """Raise `FeatureNotSupported`."""
    spi.require("feather", FEATURES, feature)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return FeatherPlugin()
