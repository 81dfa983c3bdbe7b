"""A Delta table as one publish attempt sees it: its version, and what the version's transactions say of pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laketier.kit import RecordStore
from laketier.spi import (
    COLLECTOR,
    CorruptTable,
    RolledBack,
    TableNotFound,
    TableState,
    UnknownOutcome,
    Watermark,
    schema_fingerprint,
)
from laketier_delta.altering import entry_identity
from laketier_delta.delta_log import DeltaLog
from laketier_delta.engine import arrow_schema, has_log
from laketier_delta.layout import spec_id_of
from laketier_delta.location import Location
from laketier_delta.protocol import RETENTION
from laketier_delta.transactions import Transactions, lost_round

if TYPE_CHECKING:
    from deltalake import DeltaTable

SCANNED = "laketier/scanned"
"""Transaction: all log entries up to this version were looked at for a reset (see `DeltaLog.last_reset`)."""
RESET = "laketier/reset"
"""Transaction: the newest version that reset the table, among those looked at."""


@dataclass(frozen=True)
class DeltaTableState(TableState):
    """One version of the table, and the handle on which it was seen. Valid for one publish attempt."""

    handle: DeltaTable = field(repr=False)
    location: Location
    log: DeltaLog
    transactions: Transactions = field(repr=False, compare=False)
    records: RecordStore = field(repr=False)
    version: int
    uuid: str
    fingerprint: str
    reset: int
    first_attempt: int
    entry: str | None
    """The identity of the version's log entry. None where it is on no local disk, or was cleaned up."""

    @classmethod
    def of(cls, handle: DeltaTable, location: Location, first_attempt: int = -1) -> DeltaTableState:
        """The table as ``handle`` sees it. Reads log entries that nobody has looked at for a reset."""
        log, version = DeltaLog(location.filesystem, location.root), handle.version()
        transactions = Transactions(handle, location, log, version)
        scanned, known = (transactions.version_of(name) for name in (SCANNED, RESET))
        found = None if scanned is None else log.last_reset(scanned, version)
        return cls(
            handle=handle,
            location=location,
            log=log,
            transactions=transactions,
            records=RecordStore(location.filesystem, location.root),
            version=version,
            uuid=str(handle.metadata().id),
            fingerprint=schema_fingerprint(arrow_schema(handle)),
            reset=max(-1 if known is None else known, -1 if found is None else found),
            first_attempt=first_attempt,
            entry=entry_identity(location, version),
        )

    @property
    def table_uuid(self) -> str:
        return self.uuid

    @property
    def schema_fingerprint(self) -> str:
        return self.fingerprint

    @property
    def spec_id(self) -> int:
        return spec_id_of(self.handle.metadata().partition_columns)

    @property
    def snapshot_id(self) -> int | None:
        return self.version

    def watermark(self, pipeline: str) -> Watermark | None:
        epoch, fence, pointer = self.transactions.numbers_of(pipeline)
        if pointer is None:
            self._refuse_forgotten(pipeline)
            return None
        if epoch is None or fence is None:
            raise CorruptTable(
                f"the table knows pipeline {pipeline!r} in part only (epoch {epoch}, fence {fence}, record {pointer})",
                where=self.location.uri,
                why="some of its transactions were removed or expired",
                fix="Check which epochs are in the table, then run `laketier pipeline adopt`.",
            )
        try:
            watermark = self.records.get(pipeline, pointer)
        except CorruptTable as error:
            if has_log(self.location.filesystem, self.location.root):
                if isinstance(error.__cause__, FileNotFoundError):
                    raise self._without_record(pipeline, epoch, error) from error
                raise
            raise TableNotFound("the table was dropped meanwhile", where=self.location.uri) from error
        if (watermark.token.epoch, watermark.token.fence) != (epoch, fence):
            raise CorruptTable(
                f"pipeline {pipeline!r} is at epoch {epoch}, fence {fence}, and its record says epoch "
                f"{watermark.token.epoch}, fence {watermark.token.fence}",
                where=self.location.uri,
            )
        if watermark.snapshot_id is not None and self.reset > watermark.snapshot_id:
            raise RolledBack(
                f"version {self.reset} took rows back after the pipeline's last round, which is epoch {epoch} in "
                f"version {watermark.snapshot_id}",
                where=f"{self.location.uri}, pipeline {pipeline}",
                why="a restore, or an overwrite by another writer, leaves the pipeline's epoch where it was",
                fix="Check which epochs are in the table now, then run `laketier pipeline adopt`.",
            )
        return watermark

    def _without_record(self, pipeline: str, epoch: int, error: CorruptTable) -> RolledBack:
        """Of a record that is certainly gone, unlike one that can't be read now. `adopt` and `forget` go on from this
        error, and from no damage."""
        return RolledBack(
            error.what,
            where=f"{self.location.uri}, pipeline {pipeline}",
            why=error.why,
            fix=f"Restore the file from a backup. If there is none: the pipeline was at epoch {epoch}. Check which "
            "epochs are in the table, then run `laketier pipeline adopt`, or `laketier pipeline forget` if none of its "
            "rows are there.",
        )

    def _refuse_forgotten(self, pipeline: str) -> None:
        if pipeline == COLLECTOR:  # asked of each round; a round whose files were collected is refused by itself
            return
        lost = lost_round(self.records, self.log, pipeline, self.version)
        if lost is None:
            return
        epoch, version = lost.token.epoch, lost.snapshot_id
        if version is not None and self.log.entry(version) is not None:
            raise RolledBack(
                f"the table forgot the pipeline, whose epoch {epoch} is version {version}",
                where=f"{self.location.uri}, pipeline {pipeline}",
                why=f"{RETENTION} is, or was, set, so that a checkpoint left the pipeline's transactions out",
                fix="Check which epochs are in the table, then run `laketier pipeline adopt`. If none of its rows are "
                "there, run `laketier pipeline forget`.",
            )
        raise RolledBack(
            f"whether the pipeline's epoch {epoch}, which was to be version {version}, is in the table can't be told",
            where=f"{self.location.uri}, pipeline {pipeline}",
            why="the log entry of that version was cleaned up, and the table has no transactions of the pipeline: the "
            f"round never landed, or {RETENTION} is, or was, set, and a checkpoint left them out",
            fix="Look for its rows in the table. If none of them are there, as the round never landed, run `laketier "
            "pipeline forget`, and the pipeline is a new one; otherwise find out which epoch they end with, and run "
            "`laketier pipeline adopt`.",
        )

    def pipelines(self) -> Sequence[str]:
        return self.records.pipelines()

    def landed(self, commit_id: str) -> bool:
        found = self.log.find_commit(commit_id, self.first_attempt, self.version)
        if found is None:
            raise UnknownOutcome(
                f"whether commit {commit_id} landed can't be said any more",
                where=self.location.uri,
                why="the log entries that could tell have been cleaned up",
                fix="Look for its rows in the table.",
            )
        return found
