"""One attempt at Delta's atomic step: data files and watermark in one log entry, put only if it is absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from laketier.kit import RecordStore, before_effect, failpoint
from laketier.kit.pinned_folder import pinned_folder
from laketier.kit.staged import check_staged, discard_staged, refuse_published, remove
from laketier.spi import (
    COLLECTOR,
    CommitError,
    CommitterInitContext,
    Conflict,
    LakeCommitResult,
    LakeCommitter,
    TableNotFound,
    TableState,
    Watermark,
    WriteMode,
    WriteResult,
    host_time,
    new_attempt_id,
    time_of_storage,
)
from laketier_delta.altering import entry_identity, is_onto, make_durable, take_back
from laketier_delta.checkpoints import checkpoint_when_due
from laketier_delta.delta_log import COMMIT_ID, EPOCH, HORIZON, PIPELINE, PUBLISH, DeltaLog
from laketier_delta.engine import arrow_schema, open_table, panics_as_errors, refuse_dropped
from laketier_delta.layout import attempt_of
from laketier_delta.location import LOG, Location
from laketier_delta.options import DeltaOptions
from laketier_delta.protocol import check_writable
from laketier_delta.references import live, named_since
from laketier_delta.removals import removals
from laketier_delta.results import check_partitions
from laketier_delta.state import RESET, SCANNED, DeltaTableState
from laketier_delta.transactions import horizon_text, transaction_ids
from laketier_delta.writer import STATS

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction


class DeltaCommitter(LakeCommitter[WriteResult]):
    """Publishes on the very handle that was checked. delta-rs would rebase a stale handle on its own, and would
    accept a replayed epoch on a fresh one: both are switched off, so version n + 1 is put only after version n."""

    def __init__(
        self, location: Location, options: DeltaOptions, columns: Sequence[str], context: CommitterInitContext
    ) -> None:
        """``columns``: those that the table is partitioned by."""
        self._location = location
        self._options = options
        self._columns = columns
        self._context = context
        self._log = DeltaLog(location.filesystem, location.root)
        self._records = RecordStore(location.filesystem, location.root)
        self._first_attempt: int | None = None

    def open(self) -> DeltaTableState:
        self._location.refuse_links()
        handle = open_table(self._location)
        check_writable(
            handle,
            self._location.uri,
            self._context.mode,
            accept_retention=self._options.accept_transaction_retention,
        )
        # Whoever committed it may have been killed before it was durable, and the caller may acknowledge it.
        make_durable(self._location, handle.version())
        return DeltaTableState.of(handle, self._location, -1 if self._first_attempt is None else self._first_attempt)

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        if not isinstance(state, DeltaTableState):
            raise TypeError(f"publish needs the state that open() returned, not {type(state).__name__}")
        target = state.version + 1
        if self._first_attempt is None:
            self._first_attempt = state.version
        with ExitStack() as stack:
            with before_effect(self._location.uri):
                self._check(state, results)
                transactions = self._transactions(state, target, watermark)
                actions, info = self._actions(state, results, transactions, watermark)
                folder = self._location.local(LOG) if self._location.is_local else None
                is_in_place = stack.enter_context(pinned_folder(folder))
                if folder is None:
                    is_in_place = partial(is_onto, self._location, state.version, state.entry, state.uuid)
                self._refuse_recreated(state)
                failpoint("publish.between_record_and_commit")
            self._commit(state, target, actions, info, transactions, is_in_place)
        failpoint("publish.between_commit_and_checkpoint")
        checkpoint_when_due(state.handle, self._location, target, self._options.checkpoint_interval)
        return LakeCommitResult(
            snapshot_id=target,
            rows=sum(result.rows for result in results),
            files=sum(len(result.files) for result in results),
            bytes=sum(result.bytes for result in results),
        )

    def _check(self, state: DeltaTableState, results: Sequence[WriteResult]) -> None:
        self._check_files(results)
        self._refuse_published(state, results)
        if not any(result.files for result in results):
            refuse_dropped(self._location)  # staged files that are there lie in the table's folder
        columns = state.handle.metadata().partition_columns
        check_partitions(results, columns, arrow_schema(state.handle), where=self._location.uri)

    def _transactions(self, state: DeltaTableState, target: int, watermark: Watermark | None) -> list[tuple[str, int]]:
        # Also where there was no reset: version 0 is before all rounds, so it takes none back, and an id that is in the
        # newest entry is found at once.
        transactions = [(SCANNED, target), (RESET, max(state.reset, 0))]
        if watermark is not None:
            # The entry can become no other version than this one, so the record can name it beforehand.
            pointer = self._records.put(watermark.carried_by(target))
            numbers = (watermark.token.epoch, watermark.token.fence, pointer)
            transactions += zip(transaction_ids(watermark.token.pipeline), numbers, strict=True)
        return transactions

    def storage_time(self) -> int:
        return time_of_storage(self._log.filesystem, self._location.root)

    def discard(self, results: Sequence[WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=self._attempt_of,
            where=self._location.uri,
            published=self._published,
            delete=partial(remove, self._location.folder),
        )

    def _published(self, paths: Sequence[str]) -> list[str]:
        names = {path: path.rpartition("/")[2] for path in paths}
        kept = live(self._log.filesystem, self._location.root, names.values())
        return [path for path, name in names.items() if name in kept]

    def _attempt_of(self, path: str) -> str | None:
        return attempt_of(path, self._columns)

    def _check_files(self, results: Sequence[WriteResult]) -> None:
        """delta-rs commits files that are missing, and every later read of the table fails."""
        folder, where = self._location.folder, self._location.uri
        check_staged(folder, results, attempt_of=self._attempt_of, where=where)

    def _refuse_published(self, state: DeltaTableState, results: Sequence[WriteResult]) -> None:
        """delta-rs commits a file any number of times, and what OPTIMIZE or DELETE took away comes back. Looks at the
        entries since the table was loaded for the writers: while nobody else commits there are none."""
        staged = [result for result in results if result.files]
        after = min((-1 if result.after is None else result.after for result in staged), default=state.version)
        if after >= state.version:
            return
        names = {file.path.rpartition("/")[2]: file.path for result in staged for file in result.files}
        root, since = self._location.root, range(after + 1, state.version + 1)
        named = named_since(self._log.filesystem, root, names, since)
        refuse_published(names.values(), {names[name] for name in named}, where=self._location.uri)

    def _actions(
        self,
        state: DeltaTableState,
        results: Sequence[WriteResult],
        transactions: Sequence[tuple[str, int]],
        watermark: Watermark | None,
    ) -> tuple[list[AddAction | RemoveAction], dict[str, Any]]:
        """What the entry does, and what it says of itself."""
        from deltalake.transaction import AddAction

        now = host_time()
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.bytes, dict(file.partition), now, True, file.payload[STATS])
            for result in results
            for file in result.files
        ]
        added = len(actions)
        # VACUUM counts a tombstone's days from this time, so a host that is behind must not make it an old one.
        gone_at = max(now, self.storage_time()) if any(result.replaced for result in results) else now
        removed = removals(state.handle, results, gone_at, where=self._location.uri)
        actions += removed
        info: dict[str, Any] = {COMMIT_ID: self._context.commit_id, PUBLISH: new_attempt_id()}
        if watermark is not None:
            info |= {PIPELINE: watermark.token.pipeline, EPOCH: watermark.token.epoch}
        info |= self._horizon(state, dict(transactions))
        # A write transaction counts no rows, so its history would be silent about them.
        rows = sum(result.rows for result in results)
        info["operationMetrics"] = {"numFiles": str(added), "numOutputRows": str(rows)}
        if removed:
            info["operationMetrics"]["numRemovedFiles"] = str(len(removed))
        return actions, info

    def _commit(
        self,
        state: DeltaTableState,
        target: int,
        actions: list[AddAction | RemoveAction],
        info: dict[str, Any],
        transactions: Sequence[tuple[str, int]],
        is_in_place: Callable[[], bool],
    ) -> None:
        from deltalake import CommitProperties, PostCommitHookProperties, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError

        now, attempt = host_time(), info[PUBLISH]
        overwrite = self._context.mode is WriteMode.OVERWRITE
        try:
            with panics_as_errors():
                state.handle.create_write_transaction(
                    actions,
                    "overwrite" if overwrite else "append",
                    state.handle.schema(),
                    state.handle.metadata().partition_columns,
                    commit_properties=CommitProperties(
                        custom_metadata=info,
                        max_commit_retries=0,
                        app_transactions=[Transaction(name, number, now) for name, number in transactions],
                    ),
                    # A failed checkpoint would look like a failed commit: made afterwards, where it may fail.
                    post_commithook_properties=PostCommitHookProperties(
                        create_checkpoint=False, cleanup_expired_logs=False
                    ),
                )
        except DeltaError as error:
            self._refuse_elsewhere(is_in_place, target, attempt)
            if not isinstance(error, CommitFailedError):
                raise
            self._look_who_won(error, target, attempt)
        self._refuse_elsewhere(is_in_place, target, attempt)
        make_durable(self._location, target)

    def _horizon(self, state: DeltaTableState, committed: Mapping[str, int]) -> dict[str, str]:
        """The horizon as of this commit, for those who look next."""
        if state.transactions.expire:
            return {}
        epoch, fence, pointer = (committed.get(name) for name in transaction_ids(COLLECTOR))
        told = state.transactions.numbers_of(COLLECTOR) if pointer is None else (epoch, fence, pointer)
        return {HORIZON: horizon_text(told)}

    def _refuse_recreated(self, state: DeltaTableState) -> None:
        """The log entry that the state is of may also have been cleaned up since: then the table tells."""
        if entry_identity(self._location, state.version) == state.entry:
            return
        try:
            latest = open_table(self._location)
        except TableNotFound as error:
            raise Conflict("the table was dropped meanwhile", where=self._location.uri) from error
        if str(latest.metadata().id) != state.uuid:
            raise Conflict("the table was dropped and made anew meanwhile", where=self._location.uri)

    def _refuse_elsewhere(self, is_in_place: Callable[[], bool], target: int, attempt: str) -> None:
        """Where the table was dropped just now, delta-rs made the log's folder anew, or wrote into that of the table
        that was made meanwhile, and a store has no folders: such an entry lacks what is before it, and is taken
        back."""
        if is_in_place():
            return
        take_back(self._location, target, attempt)
        raise Conflict("the table was dropped meanwhile", where=self._location.uri)

    def _look_who_won(self, error: Exception, target: int, attempt: str) -> None:
        """Return when the entry is ours after all: an object store may answer a retried put, whose first answer was
        lost, with "already exists"."""
        winner = self._log.commit_info(target)
        if winner is None:
            raise CommitError(
                f"version {target} could not be committed, and the log does not name the writer that committed it",
                where=self._location.uri,
                why=str(error),
            ) from error
        if winner.get(PUBLISH) != attempt:
            raise Conflict(
                f"another writer committed version {target}",
                where=self._location.uri,
                why=f"it is {winner.get('operation', 'a commit')} of "
                f"{winner.get('engineInfo') or winner.get('clientVersion') or 'somebody'}",
            ) from error
