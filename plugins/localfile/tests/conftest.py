"""A table and rounds on it, as the core drives them."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from laketier import open_writer
from laketier.kit.manifests import FileEntry, ManifestLog, files_at
from laketier.spi import (
    CommitterInitContext,
    LakeStorageConfig,
    PartitionField,
    Passthrough,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundResult, TieringRound
from laketier.tiering.epochs import EpochWriter
from laketier_localfile import growing
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.table import LocalFileTable

# The fork server finds the module by its plain name, as every process of multiprocessing does.
sys.path.append(str(Path(__file__).parent))
from localfile_child import Child, open_epochs

if TYPE_CHECKING:
    from faulty_s3 import FaultyS3

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


@dataclass
class Table:
    """One table, driven through the SPI."""

    warehouse: Any
    path: TablePath = field(default_factory=lambda: TablePath("db", "events"))
    schema: pa.Schema = SCHEMA
    partition_by: tuple[str, ...] = ()
    buckets: Any = None
    primary_key: tuple[str, ...] = ()
    options: LocalFileOptions = field(default_factory=LocalFileOptions)

    @property
    def storage(self) -> Any:
        return LocalFilePlugin().create_storage(LakeStorageConfig(str(self.warehouse), self.options))

    def create(self) -> TableInfo:
        partition_by = tuple(map(PartitionField.parse, self.partition_by))
        return self.storage.catalog().create_table(
            self.path, TableDescriptor(self.schema, partition_by, buckets=self.buckets, primary_key=self.primary_key)
        )

    @property
    def info(self) -> TableInfo:
        return self.storage.catalog().load_table(self.path)

    @property
    def location(self) -> Path:
        return self.warehouse / self.path.database / self.path.table

    @property
    def log(self) -> ManifestLog:
        return LocalFileTable(self.location).manifests()

    @property
    def factory(self) -> Any:
        return self.storage.tiering_factory(self.info)

    def committer(self, mode: WriteMode = WriteMode.APPEND, commit_id: str | None = None) -> Any:
        return self.factory.create_committer(CommitterInitContext(commit_id or new_attempt_id(), mode))

    def stage(self, rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> WriteResult:
        writer = self.factory.create_writer(WriterInitContext(new_attempt_id()))
        if rows:
            writer.write(pa.RecordBatch.from_pylist(list(rows), schema=schema or self.schema))
        return writer.complete()

    def ids(self, epoch: int, rows: int = 4) -> list[dict[str, Any]]:
        return [{"id": epoch * 1000 + i, "region": f"r{i}"} for i in range(rows)]

    def round(
        self,
        epoch: int | None,
        rows: Sequence[dict[str, Any]] | None = None,
        *,
        pipeline: str = "p",
        mode: WriteMode = WriteMode.APPEND,
    ) -> RoundResult:
        token = None if epoch is None else Token(pipeline, "run", epoch)
        staged = self.stage(self.ids(epoch or 0) if rows is None else rows)
        return TieringRound(self.factory, token=token, mode=mode).commit([staged])

    def scan(self, **request: Any) -> pa.Table:
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(**request))
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        return pa.Table.from_batches(batches, schema=plan.schema)

    def read_ids(self, **request: Any) -> list[int]:
        return sorted(self.scan(**request).column("id").to_pylist())

    def read_by_others(self) -> dict[str, list[int]]:
        """The ids that the lines give which people are told to read the table with."""
        return read_as_told(LocalFilePlugin().open_with(self.info))

    def files(self) -> list[FileEntry]:
        """The live files of the newest snapshot."""
        return files_at(self.log, self.log.head()[0].number)

    def with_options(self, **options: Any) -> Table:
        """The same table with other options."""
        return replace(self, options=replace(self.options, **options))

    def plain_files(self) -> list[Path]:
        """What a reader of Hive-style folders takes for data: no part of the path begins with _ or a dot."""
        return sorted(
            path
            for path in self.location.rglob("*")
            if path.is_file() and not any(p[0] in "_." for p in path.relative_to(self.location).parts)
        )

    def staged_files(self) -> list[Path]:
        return sorted((self.location / "__in_progress").iterdir())

    def child(self, failpoints: str, *epochs: int, mode: str = "append", pipeline: str = "p", **options: Any) -> Child:
        """Run rounds in a process of its own, with failpoints on."""
        return Child(
            {
                "failpoints": failpoints,
                "warehouse": str(self.warehouse),
                "table": str(self.path),
                "epochs": epochs,
                "mode": mode,
                "pipeline": pipeline,
                "options": options,
            }
        )


def read_as_told(lines: Mapping[str, str]) -> dict[str, list[int]]:
    """The ids that the lines of `LakeStoragePlugin.open_with` give in DuckDB and Polars."""
    found = {}
    for reader, line in lines.items():
        if reader in ("DuckDB", "Polars"):
            names: dict[str, Any] = {}
            *imports, last = line.split("; ")
            exec("; ".join(imports), names)  # noqa: S102 - the line that people are told to run
            rows = eval(last, names)  # noqa: S307
            found[reader] = sorted(row[0] for row in (rows.fetchall() if reader == "DuckDB" else rows.rows()))
    return found


@dataclass
class OpenTable(Table):
    """A table whose files stay open across epochs. ``keys``: more of its configuration."""

    keys: dict[str, str] = field(default_factory=dict)

    def config(self, **keys: str) -> dict[str, str]:
        return {
            "lake.format": "localfile",
            "lake.warehouse": str(self.warehouse),
            "lake.table": str(self.path),
            "lake.pipeline": "p",
            "lake.localfile.open-files": "true",
            "lake.localfile.file-format": self.keys["lake.localfile.file-format"],
            **self.keys,
            **keys,
        }

    def writer(self, **keys: str) -> EpochWriter:
        return open_writer(self.config(**keys), self.schema)

    def open_child(self, failpoints: str, *epochs: int, **keys: str) -> Child:
        """Write epochs in a process of its own."""
        job = {"failpoints": failpoints, "epochs": epochs, "config": self.config(**keys), "schema": self.schema}
        return Child(job, open_epochs)

    def changed_ids(self, start: int, end: int) -> list[int]:
        """Of the rows that the commits ``start`` to ``end`` (exclusive) added."""
        plan = self.storage.changes(self.info).plan(start, end)
        source = self.storage.source(self.info)
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        assert sum(batch.num_rows for batch in batches) == sum(split.rows or 0 for split in plan.splits)
        return sorted(pa.Table.from_batches(batches, schema=plan.schema).column("id").to_pylist())


@pytest.fixture
def open_table(tmp_path: Path) -> Callable[..., OpenTable]:
    def make(file_format: str = "json", **keys: str) -> OpenTable:
        keys = {f"lake.localfile.{name.replace('_', '-')}": value for name, value in keys.items()}
        options = LocalFileOptions(file_format=FileFormatName(file_format))
        return OpenTable(tmp_path / "lake", options=options, keys={"lake.localfile.file-format": file_format, **keys})

    return make


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[None]]:
    """Within the block there is no room for copies of open files; ``number``: the error that the system gives."""

    @contextmanager
    def full(number: int = errno.ENOSPC) -> Iterator[None]:
        def refuse(*_: Any) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(growing, "copy_bytes", refuse)
            yield

    return full


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Table]:
    def make(**options: Any) -> Table:
        table = Table(tmp_path / "lake", **options)
        table.create()
        return table

    return make


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    return make_table()


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the warehouse's."""
    apart = (each for each in ("/dev/shm", "/tmp", "/var/tmp") if os.stat(each).st_dev != tmp_path.stat().st_dev)
    with tempfile.TemporaryDirectory(dir=next(apart)) as folder:
        yield Path(folder)


SECRET = "a-secret-of-the-user"
"""moto takes any."""


@pytest.fixture(scope="module")
def s3() -> Iterator[FaultyS3]:
    from faulty_s3 import faulty_s3  # takes a second

    with faulty_s3() as service:
        yield service


@pytest.fixture
def storage(s3: FaultyS3) -> Passthrough:
    from faulty_s3 import KEY, REGION

    s3.disarm()
    return Passthrough({"endpoint": s3.url, "region": REGION, "access_key_id": KEY, "secret_access_key": SECRET})
