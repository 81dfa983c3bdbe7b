"""What the conformance suite asks for: see `laketier_conformance.harness`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from laketier import spi
from laketier.kit.durable import fsync_directory, fsync_file


class Harness:
    """DuckLake's own maintenance."""

    engine_modules: tuple[str, ...] = ("duckdb", "duckdb_extension_ducklake", "duckdb_extension_sqlite_scanner")
    dropped_files_stay = "DuckLake deletes them once the snapshots that have them expired, and it is told to clean up"

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        with storage._lake.open() as session:
            session.run(
                f"CALL ducklake_expire_snapshots({session.lake!r}, older_than => now()::TIMESTAMPTZ + INTERVAL 1 DAY)"
            )

    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        with storage._lake.open() as session:
            session.run(
                f"CALL ducklake_merge_adjacent_files({session.lake!r}, ?, schema => ?)",
                (table.path.table, table.path.database),
            )
        # As README.md says: DuckDB syncs no file that it makes.
        for file in sorted(Path(table.location).glob("ducklake-*.parquet")):
            fsync_file(file)
        fsync_directory(Path(table.location))

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        from ducklake_lake.library import quoted

        with storage._lake.open() as session:
            name = quoted(table.path.database, table.path.table)
            session.run(f"DELETE FROM {session.lake}.{name} WHERE id IN (SELECT unnest(?))", (list(ids),))
