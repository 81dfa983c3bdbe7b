"""Orphans of a table: data files that laketier staged and the log does not name, and records of old watermarks."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.kit import RecordStore
from laketier.kit.confine import RECORDS
from laketier.kit.staged import remove_files
from laketier.spi import COLLECTOR, LakeMaintenance, OrphanFile, TableFinding, WriteMode
from laketier_delta.delta_log import DeltaLog
from laketier_delta.engine import arrow_schema, open_table, transaction_version
from laketier_delta.layout import attempt_of
from laketier_delta.location import Location
from laketier_delta.options import DeltaOptions
from laketier_delta.protocol import RETENTION, check_writable
from laketier_delta.references import unreferenced
from laketier_delta.spellings import files_without_zone, zoned_partitions
from laketier_delta.transactions import lost_round, transaction_ids

_NO_RECORD = -1
"""The pointer of a pipeline that the table forgot: no record has it, so all of the pipeline's stay, and tell of it."""


class DeltaMaintenance(LakeMaintenance):
    """Driver only. Files of other writers, and tombstones, are VACUUM's."""

    def __init__(self, location: Location, options: DeltaOptions) -> None:
        self._location = location
        self._options = options
        self._filesystem = location.filesystem

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        self._location.refuse_links()
        handle = open_table(self._location)
        check_writable(
            handle,
            self._location.uri,
            WriteMode.APPEND,
            accept_retention=self._options.accept_transaction_retention,
        )
        # The files before the log: what is committed in between is in the log, then.
        staged = self._staged(handle.metadata().partition_columns, modified_before)
        names = {_name(file) for file in staged}
        left = unreferenced(self._filesystem, self._location.root, names) if names else set()
        found = [file for file in staged if _name(file) in left]
        # Where transactions expire, one that seems to be unknown may come back when the property is unset.
        if RETENTION not in handle.metadata().configuration:
            records = RecordStore(self._filesystem, self._location.root)
            log, version = DeltaLog(self._filesystem, self._location.root), handle.version()

            def current(pipeline: str) -> int | None:
                pointer = transaction_version(handle, self._location, _record_id(pipeline))
                if pointer is None and lost_round(records, log, pipeline, version) is not None:
                    return _NO_RECORD
                return pointer

            found += records.orphans(current, modified_before)
        # Each collection leaves a record of the horizon before: not worth a collection, and so another record.
        own = f"{RECORDS}/{COLLECTOR}/"
        return [] if all(file.path.startswith(own) for file in found) else found

    def findings(self) -> Sequence[TableFinding]:
        handle = open_table(self._location)
        columns = zoned_partitions(arrow_schema(handle), handle.metadata().partition_columns)
        count = files_without_zone(self._location, columns) if columns else 0
        if not count:
            return ()
        return [
            TableFinding(
                f"{count} files have partition values of {', '.join(columns)} that name no time zone",
                "delta-rs and earlier versions of laketier write them so, in UTC, and delta-spark reads them as times "
                "of its session's zone",
                "Read the table in Spark with spark.sql.session.timeZone=UTC, or rewrite its rows: read it with "
                "laketier, and write that to another table.",
            )
        ]

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        return remove_files(self._location.folder, orphans)

    def _staged(self, partition_columns: Sequence[str], modified_before: int) -> list[OrphanFile]:
        """Data files of laketier's that are old. Their names say of which attempt they are."""
        found = []
        for file in self._location.folder.files(recursive=bool(partition_columns)):
            attempt = attempt_of(file.path, partition_columns)
            if attempt is not None and file.modified_at < modified_before:
                found.append(OrphanFile(file.path, file.bytes, file.modified_at, attempt=attempt))
        return found


def _name(file: OrphanFile) -> str:
    return file.path.rpartition("/")[2]


def _record_id(pipeline: str) -> str:
    return transaction_ids(pipeline)[2]
