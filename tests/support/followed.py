"""A lake table that is read as a log, and what others do to it with the format's own library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.registry import Lake, OpenSource, open_log_source
from laketier.spi import LogOffsets, LogRange, TableLog, WriteMode
from laketier.tables import prepare_table
from laketier_verification.lakes import SCHEMA, append, lake_at, rows_of

NAME = "db.s"


def ids_in(log: TableLog, start: int, end: int) -> list[int]:
    """What the log has there, sorted."""
    wanted = LogRange(LogOffsets({"table": start}), LogOffsets({"table": end}))
    batches = [batch for split in log.plan(wanted) for batch in log.read(split)]
    assert all(batch.schema.equals(log.table.schema) for batch in batches)
    return sorted(i for batch in batches for i in batch["id"].to_pylist())


class Followed(ABC):
    """The table. Each use opens it afresh."""

    format: str
    expires: bool = True
    """Whether others can make its history short."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse

    @property
    def lake(self) -> Lake:
        return lake_at(self.warehouse, self.format, NAME)

    def create(self, schema: pa.Schema = SCHEMA) -> Followed:
        prepare_table(self.lake, schema)
        return self

    @property
    def location(self) -> str:
        return self.lake.load_table().location.removeprefix("file://")

    def open(self) -> OpenSource:
        options = {"lake.format": self.format, "lake.warehouse": str(self.warehouse)}
        return open_log_source("lake", options, name="src", origin="the test")

    def log(self, **options: Any) -> TableLog:
        return self.open().open(NAME, {name.replace("_", "-"): value for name, value in options.items()})

    @property
    def latest(self) -> int:
        return self.log().bounds()["table"].latest

    def ids(self, start: int, end: int, **options: Any) -> list[int]:
        """What the log has there, sorted."""
        return ids_in(self.log(**options), start, end)

    def append(self, *ids: int) -> None:
        """By laketier."""
        append(self.lake, rows_of(*ids))

    def replace(self, *ids: int) -> None:
        """By laketier."""
        append(self.lake, rows_of(*ids), mode=WriteMode.OVERWRITE)

    @abstractmethod
    def foreign_append(self, *ids: int) -> None: ...

    @abstractmethod
    def delete(self, id: int) -> None:
        """One of several rows of a file."""

    @abstractmethod
    def compact(self) -> None:
        """Move all rows to other files."""

    @abstractmethod
    def expire(self) -> None:
        """Forget all but the newest snapshot, and delete the files of the others."""


class FollowedLocal(Followed):
    """Local files have no other writer, and keep everything."""

    format = "localfile"
    expires = False

    def foreign_append(self, *ids: int) -> None:
        self.append(*ids)

    def delete(self, id: int) -> None:
        raise NotImplementedError

    def compact(self) -> None:
        raise NotImplementedError

    def expire(self) -> None:
        raise NotImplementedError


class FollowedDelta(Followed):
    format = "delta"

    def _open(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.location)

    def foreign_append(self, *ids: int) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.location, pa.Table.from_batches([rows_of(*ids)]), mode="append")

    def delete(self, id: int) -> None:
        self._open().delete(f"id = {id}")

    def compact(self) -> None:
        assert self._open().optimize.compact()["numFilesRemoved"] > 1

    def expire(self) -> None:
        table = self._open()
        short = {
            "delta.logRetentionDuration": "interval 0 seconds",
            "delta.deletedFileRetentionDuration": "interval 0 seconds",
        }
        table.alter.set_table_properties(short)
        table.create_checkpoint()
        table.cleanup_metadata()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)


class FollowedIceberg(Followed):
    format = "iceberg"

    def _open(self) -> Any:
        from laketier_iceberg.loading import load

        return load(self.lake.source(self.lake.load_table()).settings, self.lake.config.table)  # type: ignore[attr-defined]

    def foreign_append(self, *ids: int) -> None:
        self._open().append(pa.Table.from_batches([rows_of(*ids)]))

    def delete(self, id: int) -> None:
        self._open().delete(f"id == {id}")

    def compact(self) -> None:
        """pyiceberg has the snapshot for it and no call that makes one."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files
        from pyiceberg.table.snapshots import Operation, Summary
        from pyiceberg.table.update.snapshot import _OverwriteFiles

        class _Rewrite(_OverwriteFiles):
            def _summary(self, snapshot_properties: Any = None) -> Summary:
                self._operation = Operation.OVERWRITE
                counted = super()._summary(snapshot_properties or {})
                self._operation = Operation.REPLACE
                return Summary(Operation.REPLACE, **counted.additional_properties)

        table = self._open()
        old, rows = [task.file for task in table.scan().plan_files()], table.scan().to_arrow()
        assert len(old) > 1
        with table.transaction() as transaction:
            new = list(_dataframe_to_data_files(transaction.table_metadata, rows, table.io))
            with _Rewrite(operation=Operation.REPLACE, transaction=transaction, io=table.io) as rewrite:
                for file in old:
                    rewrite.delete_data_file(file)
                for file in new:
                    rewrite.append_data_file(file)

    def expire(self) -> None:
        table = self._open()
        current = table.current_snapshot().snapshot_id
        old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id != current]
        table.maintenance.expire_snapshots().by_ids(old).commit()


class FollowedLance(Followed):
    format = "lance"

    def _open(self) -> Any:
        import lance

        return lance.dataset(self.location)

    def foreign_append(self, *ids: int) -> None:
        import lance

        lance.write_dataset(pa.Table.from_batches([rows_of(*ids)]), self.location, mode="append")

    def delete(self, id: int) -> None:
        self._open().delete(f"id = {id}")

    def compact(self) -> None:
        assert self._open().optimize.compact_files().fragments_removed > 1

    def expire(self) -> None:
        self._open().cleanup_old_versions(older_than=timedelta(0), retain_versions=1)


FOLLOWED: dict[str, type[Followed]] = {
    kind.format: kind for kind in (FollowedDelta, FollowedIceberg, FollowedLance, FollowedLocal)
}
