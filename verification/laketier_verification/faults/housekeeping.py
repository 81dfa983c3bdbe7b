"""What others do to a table, with each format's own library: small appends, compaction, expiry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

import pyarrow as pa

from laketier_verification.faults.foreign_read import foreign_catalog
from laketier_verification.faults.marked import SCHEMA, MarkedTable, rows_of

THEIRS = "theirs"


def their_row(number: int) -> pa.Table:
    return pa.Table.from_batches([rows_of(number, THEIRS, 1)])


class Foreigner(ABC):
    """Another writer of the same table. Keeps its connection, as a real one would; opens the table for each change."""

    properties: dict[str, str] = {}  # noqa: RUF012 - constants
    """What such a table would be created with, so that its owner's clean-up works."""

    def __init__(self, table: MarkedTable) -> None:
        self.table = table
        self.location = str(table.location)

    @abstractmethod
    def append(self, number: int) -> None:
        """Commit one row."""

    @abstractmethod
    def look(self) -> None:
        """Open the table, as their library does before anything else."""

    @abstractmethod
    def compact(self) -> None:
        """Make few files of many."""

    @abstractmethod
    def expire(self, keep: int) -> None:
        """Forget all but about the newest ``keep`` snapshots or log entries, and their files."""

    def work(self, name: str, number: int) -> None:
        """One piece of the work called ``name``, for `meddling`."""
        if name == "append":
            self.append(number)
        elif name == "compact":
            self.compact()
        else:
            self.expire(5)

    @abstractmethod
    def retained(self) -> int:
        """How many snapshots or log entries there are."""

    def close(self) -> None:  # noqa: B027 - not all have one
        """Let go of the connection."""


class DeltaForeigner(Foreigner):
    """Checkpoints every 10 commits, as the protocol's default is. The log is cleaned up by `expire` alone, so that as
    much of it is left at the end as a benchmark asks for."""

    properties = {  # noqa: RUF012
        "delta.checkpointInterval": "10",
        "delta.logRetentionDuration": "interval 0 seconds",
        "delta.deletedFileRetentionDuration": "interval 0 seconds",
        "delta.enableExpiredLogCleanup": "false",
    }

    def _open(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.location)

    def look(self) -> None:
        self._open()

    def append(self, number: int) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.location, their_row(number), mode="append")

    def compact(self) -> None:
        self._open().optimize.compact()

    def expire(self, keep: int) -> None:
        """A checkpoint, then the log before it goes, and the files that OPTIMIZE replaced; ``keep`` is always 1."""
        handle = self._open()
        handle.create_checkpoint()
        handle.cleanup_metadata()
        handle.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def work(self, name: str, number: int) -> None:
        """VACUUM keeps its week: with less, and while others write, no Delta table is safe."""
        if name == "vacuum":
            self._open().vacuum(dry_run=False, full=True)
        else:
            super().work(name, number)

    def retained(self) -> int:
        return sum(1 for path in (self.table.location / "_delta_log").glob("[0-9]*.json"))


class IcebergForeigner(Foreigner):
    properties = {"commit.manifest-merge.enabled": "true", "write.metadata.delete-after-commit.enabled": "true"}  # noqa: RUF012

    def __init__(self, table: MarkedTable) -> None:
        super().__init__(table)
        self._catalog = foreign_catalog(table.warehouse)

    def _open(self) -> Any:
        return self._catalog.load_table(str(self.table.path))

    def look(self) -> None:
        self._open()

    def append(self, number: int) -> None:
        self._open().append(their_row(number))

    def compact(self) -> None:
        """pyiceberg has no compaction: everything is read, and written over itself in one snapshot."""
        table = self._open()
        table.overwrite(table.scan().to_arrow())

    def expire(self, keep: int) -> None:
        table = self._open()
        chain = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)
        old = [snapshot.snapshot_id for snapshot in chain[:-keep]]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()

    def retained(self) -> int:
        return len(self._open().metadata.snapshots)

    def close(self) -> None:
        self._catalog.close()


class LanceForeigner(Foreigner):
    def _open(self) -> Any:
        import lance

        return lance.dataset(self.location)

    def look(self) -> None:
        self._open()

    def append(self, number: int) -> None:
        import lance

        lance.write_dataset(their_row(number).cast(SCHEMA), self.location, mode="append")

    def compact(self) -> None:
        self._open().optimize.compact_files()

    def expire(self, keep: int) -> None:
        self._open().cleanup_old_versions(older_than=timedelta(0), retain_versions=keep)

    def work(self, name: str, number: int) -> None:
        if name == "index":
            self._open().create_scalar_index("epoch", "BTREE", replace=True)
        else:
            super().work(name, number)

    def retained(self) -> int:
        return len(self._open().version_refs())


class LocalForeigner(Foreigner):
    """Local files have one writer: another pipeline of ours. Nothing expires there."""

    def look(self) -> None:
        self.table.info  # noqa: B018 - opening it is the point

    def append(self, number: int) -> None:
        self.table.append(number, rows_of(number, THEIRS, 1), pipeline=THEIRS)

    def compact(self) -> None:
        pass

    def expire(self, keep: int) -> None:
        pass

    def retained(self) -> int:
        return sum(1 for path in (self.table.location / "_laketier_manifests").glob("*/[0-9]*.json"))


_FOREIGNERS: dict[str, type[Foreigner]] = {
    "delta": DeltaForeigner,
    "iceberg": IcebergForeigner,
    "lance": LanceForeigner,
    "localfile": LocalForeigner,
}


def foreigner_for(table: MarkedTable) -> Foreigner:
    """The other writer of a table."""
    return _FOREIGNERS[table.format](table)


def create_for(format: str, warehouse: str, **properties: str) -> tuple[MarkedTable, Foreigner]:
    """A new table, and its other writer."""
    kind = _FOREIGNERS[format]
    table = MarkedTable(format, warehouse).create(properties=kind.properties | properties)
    return table, kind(table)
