"""The atomic step: one `commit_table` of the catalog, against the very table that `open` loaded. Driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from laketier.kit.before_effect import before_effect
from laketier.kit.failpoints import failpoint
from laketier.kit.staged import check_staged, discard_staged, remove, replaced_files
from laketier.spi import (
    CommitterInitContext,
    Conflict,
    FeatureNotSupported,
    LakeCommitResult,
    LakeCommitter,
    TableState,
    UnknownOutcome,
    Watermark,
    WriteMode,
    WriteResult,
    host_time,
    schema_fingerprint,
)
from laketier_iceberg.clock import storage_time
from laketier_iceberg.connection import CatalogSettings, sync_embedded
from laketier_iceberg.data_files import data_files
from laketier_iceberg.erased import refuse_erased, refuse_rolled_back
from laketier_iceberg.files import Files
from laketier_iceberg.history import COMMIT_ID, EPOCH, PIPELINE, SEQUENCE, WATERMARK, History
from laketier_iceberg.live_files import refuse_listed
from laketier_iceberg.loading import load
from laketier_iceberg.locations import Below
from laketier_iceberg.references import References, name_of
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.table_properties import EXPIRY, TARGET_FILE_SIZE, check_properties
from laketier_iceberg.types import to_arrow
from laketier_iceberg.writer import WriterPlan, attempt_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from laketier_iceberg.transaction import StagedSnapshot

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IcebergState(TableState):
    """A table as loaded, with the handle that one publish attempt uses."""

    table: Table
    since: int | None = None
    """The last sequence number before this committer's first attempt to publish; None before it."""

    @property
    def table_uuid(self) -> str:
        """The table's UUID."""
        return str(self.table.metadata.table_uuid)

    @cached_property
    def _fingerprint(self) -> str:
        return schema_fingerprint(to_arrow(self.table.schema()))

    @property
    def schema_fingerprint(self) -> str:
        """Of the current schema, with field ids."""
        return self._fingerprint

    @property
    def spec_id(self) -> int:
        """The default spec's id."""
        return int(self.table.metadata.default_spec_id)

    @property
    def snapshot_id(self) -> int | None:
        """The head of ``main``."""
        current = self.table.metadata.current_snapshot()
        return None if current is None else int(current.snapshot_id)

    def watermark(self, pipeline: str) -> Watermark | None:
        found = History(self.table.metadata).watermark(pipeline)
        if found is None:
            refuse_erased(self.table, pipeline)
        else:
            refuse_rolled_back(self.table, pipeline, found)
        return found

    def pipelines(self) -> Sequence[str]:
        return History(self.table.metadata).pipelines()

    def landed(self, commit_id: str) -> bool:
        return History(self.table.metadata).landed(commit_id, self.since)


class IcebergCommitter(LakeCommitter[WriteResult]):
    """Commits rounds to one table."""

    def __init__(
        self, settings: CatalogSettings, plan: WriterPlan, context: CommitterInitContext, *, expire: bool
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._context = context
        self._expire = expire
        self._since: int | None = None

    def open(self) -> IcebergState:
        table = load(self._settings, self._plan.table.path)
        refuse_version(table)
        unread = (TARGET_FILE_SIZE,) if self._expire else (TARGET_FILE_SIZE, *EXPIRY)
        check_properties(table.metadata.properties, str(self._plan.table.path), unread=unread)
        sync_embedded(self._settings)
        return IcebergState(table, self._since)

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        from pyiceberg.exceptions import CommitFailedException

        from laketier_iceberg.expiry import expired
        from laketier_iceberg.transaction import Leaving, stage

        assert isinstance(state, IcebergState), "a state of this committer's own open()"
        if self._since is None:
            self._since = state.table.metadata.next_sequence_number() - 1
        with before_effect(str(self._plan.table.path)):
            self._check_files(results)
            refuse_listed(state.table, results, where=str(self._plan.table.path))
            leaving = Leaving.of(state.table, {name for result in results for name in result.replaced})
            replaced_files(results, leaving.paths, where=str(self._plan.table.path))
            failpoint("publish.before_manifests")
            files = data_files(state.table, results, self._plan.base)
            staged = stage(
                state.table,
                files,
                self._summary(watermark),
                replace=self._context.mode is WriteMode.OVERWRITE,
                leaving=leaving,
            )
            if watermark is not None:
                pipeline = watermark.token.pipeline
                staged.set_properties(
                    {
                        WATERMARK + pipeline: watermark.carried_by(staged.snapshot.snapshot_id).to_json(),
                        SEQUENCE + pipeline: str(staged.snapshot.sequence_number),
                    }
                )
            if self._expire:
                staged.expire(*expired(staged.metadata(), self._now(staged.snapshot.manifest_list)))
            failpoint("publish.between_manifests_and_commit")
        try:
            staged.publish()
        except CommitFailedException as error:
            self._resolve(state, staged, error)
        return LakeCommitResult(
            snapshot_id=staged.snapshot.snapshot_id,
            rows=sum(result.rows for result in results),
            files=len(files),
            bytes=sum(result.bytes for result in results),
        )

    def _now(self, manifest_list: str) -> int:
        """The earlier of what this host and the storage say, which dated the manifest list a moment ago: a host that is
        ahead must not expire snapshots that are young."""
        filesystem, path = Files(self._plan.io).resolve(manifest_list)
        return min(host_time(), filesystem.get_file_info(path).mtime_ns // 1_000_000)

    def storage_time(self) -> int:
        return storage_time(self._plan.io, self._plan.table.location)

    def discard(self, results: Sequence[WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=attempt_of,
            where=str(self._plan.table.path),
            published=self._published,
            delete=partial(remove, Files(self._plan.io).folder(self._plan.base)),
        )

    def _published(self, paths: Sequence[str]) -> list[str]:
        table = load(self._settings, self._plan.table.path)
        named = References.of(table, Below(table.metadata.location.rstrip("/"))).names
        return [path for path in paths if name_of(path) in named]

    def _check_files(self, results: Sequence[WriteResult]) -> None:
        """pyiceberg commits files that are missing, and every later read of the table fails."""
        if any(result.files for result in results):
            folder, where = Files(self._plan.io).folder(self._plan.base), str(self._plan.table.path)
            check_staged(folder, results, attempt_of=attempt_of, where=where)

    def _resolve(self, state: IcebergState, staged: StagedSnapshot, error: Exception) -> None:
        """Find out what "commit failed" means. A transport that repeats a request gets it for a commit that landed.

        Returns when it landed; raises `Conflict` when it certainly did not and never will.
        """
        failpoint("publish.between_refusal_and_look")
        now = load(self._settings, self._plan.table.path).metadata
        before = state.table.metadata
        if now.snapshot_by_id(staged.snapshot.snapshot_id) is not None:
            log.info("snapshot %d landed although the catalog said: %s", staged.snapshot.snapshot_id, error)
            return
        head = now.current_snapshot()
        moved = (
            now.table_uuid != before.table_uuid
            or (None if head is None else head.snapshot_id) != state.snapshot_id
            or now.current_schema_id != before.current_schema_id
            or now.default_spec_id != before.default_spec_id
        )
        if not moved and not is_local(state.table.catalog):
            raise UnknownOutcome(
                "the catalog refused the commit, and nothing that it depends on has changed",
                where=str(self._plan.table.path),
                why=str(error),
                fix="The table is read again. If this repeats, read the catalog's log.",
            ) from error
        staged.forget()
        raise Conflict("another commit came first", where=str(self._plan.table.path), why=str(error)) from error

    def _summary(self, watermark: Watermark | None) -> dict[str, str]:
        summary = {COMMIT_ID: self._context.commit_id}
        if watermark is not None:
            token = watermark.token
            summary |= {
                PIPELINE: token.pipeline,
                EPOCH: str(token.epoch),
                # What Iceberg's own Spark sink looks for, should it ever take the query over.
                "spark.sql.streaming.queryId": token.run,
                "spark.sql.streaming.epochId": str(token.epoch),
            }
        return summary


def is_local(catalog: Any) -> bool:
    """Whether "commit failed" can only come from this process's own transaction with a database: no server, no
    transport that repeats."""
    from pyiceberg.catalog.sql import SqlCatalog

    return isinstance(catalog, SqlCatalog)


def refuse_version(table: Table) -> None:
    """Raise `FeatureNotSupported` for tables that pyiceberg can't write."""
    version = table.metadata.format_version
    if version != 2:
        raise FeatureNotSupported(
            f"writing tables of version {version}",
            format=FORMAT,
            reason="pyiceberg commits version 2 only" if version > 2 else "version 1 has no sequence numbers",
            fix="Write to a table of version 2." if version > 2 else "Upgrade the table to version 2.",
        )
