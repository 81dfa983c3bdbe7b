"""Publishing, on the driver: one `Merge`, or one strict `Overwrite`, per attempt."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from laketier.kit import before_effect, failpoint
from laketier.kit.pinned_folder import pinned_folder
from laketier.kit.staged import (
    discard_staged,
    refuse_live,
    refuse_published,
    replaced_files,
)
from laketier.spi import (
    CommitError,
    CommitterInitContext,
    Conflict,
    LakeCommitResult,
    LakeCommitter,
    LaketierError,
    Refused,
    TableNotFound,
    TableState,
    Watermark,
    WriteMode,
    WriteResult,
)
from laketier_lance.clock import storage_time
from laketier_lance.dataset import (
    UPGRADE,
    indexes_of,
    is_for_newer,
    lance_errors,
    open_dataset,
    reason,
    refuse_dropped,
)
from laketier_lance.durable import local_versions, make_durable, remove_transaction, remove_version
from laketier_lance.latest import manifest_identity
from laketier_lance.location import refuse_links
from laketier_lance.names import DATA, attempt_of
from laketier_lance.options import LanceOptions
from laketier_lance.private import data_path, with_metadata, with_plain_paths
from laketier_lance.staged_fragments import check_files, staged_fragments
from laketier_lance.state import LanceTableState, find_commit
from laketier_lance.store_drops import take_back, was_dropped, witness
from laketier_lance.table import (
    COMMIT_ID,
    EPOCH,
    ERASED,
    LAST,
    LOST_PREFIX,
    PIPELINE,
    ROWS,
    metadata_of,
    owned,
    table_uuid,
    watermark_key,
)
from laketier_lance.tracked import named_since, needed
from laketier_lance.writer import delete_files

if TYPE_CHECKING:
    from lance import LanceDataset, LanceOperation, Transaction
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

log = logging.getLogger(__name__)


class LanceCommitter(LakeCommitter[WriteResult]):
    """Appends by a `Merge` of the fragments that are there and the new ones: unlike Lance's own `Append` it carries
    schema metadata, where the watermark is, and conflicts with every other commit that touched rows, schema or that
    metadata. It lets config changes and new indexes pass, which change neither.

    What replaces fragments is an `Overwrite` of those that stay and the new ones: a `Merge` must name all that are
    there, and Lance's own `Update` carries no schema metadata.
    """

    def __init__(self, location: str, options: LanceOptions, context: CommitterInitContext) -> None:
        self._location = location
        self._options = options
        self._context = context
        self._attempted_at: int | None = None

    def open(self) -> LanceTableState:
        refuse_links(self._location)
        dataset = open_dataset(self._location, self._options.storage_options())
        # Whoever committed it may have been killed before it was durable, and the caller may acknowledge it.
        make_durable(self._location, dataset.version)
        manifest = manifest_identity(self._location, dataset.version)
        return LanceTableState.of(dataset, self._location, self._attempted_at, manifest)

    def publish(
        self, state: TableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> LakeCommitResult:
        if not isinstance(state, LanceTableState):
            raise TypeError(f"not a state of this committer: {state!r}")
        dataset, storage = state.dataset, self._options.storage_options()
        if self._attempted_at is None:
            self._attempted_at = dataset.version
        with ExitStack() as stack:
            with before_effect(self._location):
                transaction = self._transaction(state, results, watermark)
                is_in_place = stack.enter_context(pinned_folder(local_versions(self._location)))
                staged = (file.path for result in results for file in result.files)
                witnesses = stack.enter_context(witness(self._location, storage, dataset, staged))
                self._refuse_recreated(state)
                failpoint("publish.before_commit")
            try:
                version = self._commit(dataset, transaction)
            except LaketierError as error:
                if is_in_place():
                    raise
                # Whatever came of it is in a folder that was dropped, so this is no unknown outcome.
                remove_transaction(self._location, dataset.version + 1, transaction.uuid)
                raise Conflict("the table was dropped meanwhile", where=self._location) from error
            if not is_in_place():
                # Lance made the folder anew, or wrote into that of the table that was made meanwhile.
                remove_version(self._location, version, transaction.uuid)
                raise Conflict("the table was dropped meanwhile", where=self._location)
            if was_dropped(self._location, storage, dataset, witnesses, dataset.version):
                take_back(self._location, storage, version, transaction.uuid)
                raise Conflict("the table was dropped meanwhile", where=self._location)
        failpoint("publish.between_commit_and_fsync")
        make_durable(self._location, version)
        return LakeCommitResult(
            snapshot_id=version,
            rows=sum(result.rows for result in results),
            files=sum(len(result.files) for result in results),
            bytes=sum(result.bytes for result in results),
        )

    def _transaction(
        self, state: LanceTableState, results: Sequence[WriteResult], watermark: Watermark | None
    ) -> Transaction:
        import lance

        dataset = state.dataset
        fragments = staged_fragments(dataset, results, self._location)
        check_files(results, self._location, self._options)
        if not fragments:
            refuse_dropped(self._location, self._options.storage_options())  # staged files lie in the table's folder
        present = with_plain_paths(fragment.metadata for fragment in dataset.get_fragments())
        # Lance commits a file any number of times.
        refuse_live(
            (file.path for result in results for file in result.files), _data_files(present), where=self._location
        )
        self._refuse_published(dataset, results)
        replaced = replaced_files(results, {str(fragment.id) for fragment in present}, where=self._location)
        schema = with_metadata(dataset.lance_schema, self._metadata(state, watermark))
        if replaced or self._context.mode is WriteMode.OVERWRITE:
            self._refuse_indexes(dataset)
        operation = self._operation(schema, present, fragments, replaced)
        return lance.Transaction(
            read_version=dataset.version,
            operation=operation,
            transaction_properties=self._properties(results, watermark),
        )

    def _refuse_published(self, dataset: LanceDataset, results: Sequence[WriteResult]) -> None:
        """What a compaction or a deletion took away since would come back. Looks at the versions since the dataset was
        opened for the writers: while nobody else commits there are none."""
        staged = [result for result in results if result.files]
        after = min((0 if result.after is None else result.after for result in staged), default=dataset.version)
        if after < dataset.version:
            paths = [file.path for result in staged for file in result.files]
            refuse_published(paths, named_since(dataset, paths, after), where=self._location)

    def _refuse_recreated(self, state: LanceTableState) -> None:
        """The manifest that the state is of may also have been cleaned up since: then the table tells."""
        found = manifest_identity(self._location, state.dataset.version)
        if found is not None and found == state.manifest:
            return
        try:
            latest = open_dataset(self._location, self._options.storage_options())
        except TableNotFound as error:
            raise Conflict("the table was dropped meanwhile", where=self._location) from error
        if table_uuid(latest, metadata_of(latest)) != state.table_uuid:
            raise Conflict("the table was dropped and made anew meanwhile", where=self._location)

    def _commit(self, dataset: LanceDataset, transaction: Transaction) -> int:
        import lance
        from lance.commit import CommitConflictError

        try:
            # No retries of Lance's own. A Merge conflicts with all that matters even so; an Overwrite, which would
            # otherwise bury appends that came in between, becomes a compare-and-set only by this.
            committed = lance.LanceDataset.commit(
                dataset, transaction, storage_options=self._options.storage_options(), max_retries=0
            )
            return int(committed.version)
        except CommitConflictError as error:
            return self._resolve(dataset, transaction.uuid, error)
        except lance_errors() as error:
            if is_for_newer(error):
                raise Refused(
                    "a newer version of Lance wrote the dataset, and this one must not write to it",
                    where=self._location,
                    why=reason(error),
                    fix=UPGRADE,
                ) from error
            raise CommitError("Lance could not commit", where=self._location, why=reason(error)) from error

    def storage_time(self) -> int:
        return storage_time(self._location, self._options)

    def discard(self, results: Sequence[WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=attempt_of,
            where=self._location,
            published=self._published,
            delete=partial(delete_files, self._location, self._options),
        )

    def _published(self, paths: Sequence[str]) -> set[str]:
        return needed(open_dataset(self._location, self._options.storage_options()), paths)

    def _metadata(self, state: LanceTableState, watermark: Watermark | None) -> dict[bytes, bytes]:
        target = state.dataset.version + 1
        metadata = owned(state.metadata, state.table_uuid, self._location)
        metadata[LAST] = str(target).encode()
        if state.erased is not None:
            metadata[ERASED] = str(state.erased).encode()
        metadata |= {LOST_PREFIX + pipeline.encode(): str(version).encode() for pipeline, version in state.lost.items()}
        if watermark is not None:
            pipeline = watermark.token.pipeline
            metadata[watermark_key(pipeline)] = watermark.carried_by(target).to_json().encode()
            metadata.pop(LOST_PREFIX + pipeline.encode(), None)
        return metadata

    def _operation(
        self,
        schema: LanceSchema,
        present: list[FragmentMetadata],
        fragments: list[FragmentMetadata],
        replaced: Collection[str],
    ) -> LanceOperation.BaseOperation:
        from lance import LanceOperation

        if self._context.mode is WriteMode.OVERWRITE:
            return LanceOperation.Overwrite(schema, fragments)
        if replaced:
            # Without a number of rows it has none, or nobody knows: it stays.
            kept = [
                fragment
                for fragment in present
                if str(fragment.id) not in replaced
                and (cast("int | None", fragment.physical_rows) is None or fragment.num_rows)
            ]
            self._refuse_deletions(kept)
            return LanceOperation.Overwrite(schema, [*kept, *fragments])
        # True, as the schema is the table's own; so appends of others that are under way need not start over.
        return LanceOperation.Merge([*present, *fragments], schema, preserves_nullability=True)

    def _refuse_indexes(self, dataset: LanceDataset) -> None:
        """An `Overwrite` takes every index away. A round that replaces all rows on purpose may; a merge may not."""
        names = sorted({index.name for index in indexes_of(dataset)})
        if names and self._context.mode is not WriteMode.OVERWRITE:
            raise Refused(
                f"replacing rows would drop the indexes {', '.join(names)}; nothing was published",
                where=self._location,
                why="Lance can't replace fragments and keep indexes in the step that stores the watermark",
                fix="Drop the indexes before rounds that merge rows, and create them again afterwards.",
            )
        if names:
            log.warning("%s: replacing rows drops the indexes %s; make them again", self._location, ", ".join(names))

    def _refuse_deletions(self, kept: Sequence[FragmentMetadata]) -> None:
        """Lance takes fragments that are there into an `Overwrite`, but none with a deletion file."""
        deleted = [fragment.id for fragment in kept if fragment.deletion_file is not None]
        if deleted:
            raise Refused(
                f"rows of fragments {deleted} were deleted by another program, and the fragments stay; nothing was "
                "published",
                where=self._location,
                why="Lance can't replace other fragments in the step that stores the watermark while there are such",
                fix="Run `dataset.optimize.compact_files(materialize_deletions_threshold=0)`, and the round again.",
            )

    def _properties(self, results: Sequence[WriteResult], watermark: Watermark | None) -> dict[str, str]:
        properties = {COMMIT_ID: self._context.commit_id, ROWS: str(sum(result.rows for result in results))}
        if watermark is not None:
            properties |= {PIPELINE: watermark.token.pipeline, EPOCH: str(watermark.token.epoch)}
        return properties

    def _resolve(self, dataset: LanceDataset, transaction: str, error: Any) -> int:
        """A store that asks again, as the answer to a conditional put was lost, is told that the name is taken: by us.
        Lance looks into that by itself; as deleting files hangs on it, a conflict counts only when this very
        transaction is not among those since."""
        latest = open_dataset(self._location, self._options.storage_options())
        landed = find_commit(latest, lambda since: since.uuid == transaction, after=dataset.version)
        if landed is not None:
            return landed
        raise Conflict("another commit came first", where=self._location, why=reason(error)) from error


def _data_files(fragments: Iterable[FragmentMetadata]) -> set[str]:
    """The paths of the data files of ``fragments``, as results name them."""
    return {f"{DATA}/{data_path(file)}" for fragment in fragments for file in fragment.files}
