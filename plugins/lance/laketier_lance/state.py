"""The state that `LanceCommitter.open` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from laketier.spi import COLLECTOR, RolledBack, TableState, UnknownOutcome, Watermark, schema_fingerprint
from laketier_lance.dataset import lance_errors, properties_of, read_transaction, unreadable
from laketier_lance.lance_schema import with_field_ids
from laketier_lance.names import DATA, attempt_of
from laketier_lance.private import data_path
from laketier_lance.rounds import LanceRound, rounds_since
from laketier_lance.table import (
    COMMIT_ID,
    ERASED,
    LAST,
    LOST_PREFIX,
    PIPELINE,
    TABLE_UUID,
    WATERMARK_PREFIX,
    metadata_of,
    number_in,
    table_uuid,
    watermark_key,
)
from laketier_lance.versions import versions_of

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

ROLLBACK_HORIZON = 256
"""Versions that are looked at, at most, for a watermark that a restore took away."""


@dataclass(frozen=True)
class LanceTableState(TableState):
    """A dataset at one version, and its schema metadata. ``attempted_at`` is the version that this round's first
    attempt to publish was made against, None before it. ``manifest``: the identity of the version's manifest, where a
    committer opened it on a local disk."""

    dataset: LanceDataset
    location: str
    metadata: Mapping[bytes, bytes]
    attempted_at: int | None
    manifest: str | None

    @classmethod
    def of(
        cls, dataset: LanceDataset, location: str, attempted_at: int | None, manifest: str | None = None
    ) -> LanceTableState:
        """The state of ``dataset`` at the version it was opened at."""
        return cls(dataset, location, metadata_of(dataset), attempted_at, manifest)

    @cached_property
    def table_uuid(self) -> str:
        """Stored in the schema metadata, or derived for a dataset that laketier never wrote to."""
        return table_uuid(self.dataset, self.metadata)

    @cached_property
    def schema_fingerprint(self) -> str:
        """Covers Lance's field ids."""
        return schema_fingerprint(with_field_ids(self.dataset.lance_schema))

    @property
    def spec_id(self) -> int:
        """Lance has no partition specs."""
        return 0

    @property
    def snapshot_id(self) -> int:
        """The dataset's version."""
        return int(self.dataset.version)

    def watermark(self, pipeline: str) -> Watermark | None:
        stored = self.metadata.get(watermark_key(pipeline))
        if stored is None:
            self._refuse_erased(pipeline)
            return None
        watermark = Watermark.from_json(stored)
        self._refuse_rollback(watermark)
        return watermark

    def pipelines(self) -> Sequence[str]:
        stored = (
            key.removeprefix(WATERMARK_PREFIX).decode() for key in self.metadata if key.startswith(WATERMARK_PREFIX)
        )
        return list(dict.fromkeys([*stored, *self.lost]))

    def landed(self, commit_id: str) -> bool:
        def is_it(transaction: Transaction) -> bool:
            return properties_of(transaction).get(COMMIT_ID) == commit_id

        return find_commit(self.dataset, is_it, after=self.attempted_at or 0) is not None

    def _refuse_rollback(self, watermark: Watermark) -> None:
        """A restore brings back an older watermark. Then a later version carried a newer one of the pipeline."""
        version = self.lost.get(watermark.token.pipeline)
        if version is not None:
            raise RolledBack(
                f"version {version} published a later epoch of pipeline {watermark.token.pipeline!r} than epoch "
                f"{watermark.token.epoch}, which the table knows now",
                where=self.location,
                why="the table was restored to an older version, or overwritten with one",
                fix="Decide which rows are in the table, then run `laketier pipeline adopt`, or restore the "
                f"version {version} or a later one.",
            )

    def _refuse_erased(self, pipeline: str) -> None:
        """Others may replace all metadata of the schema, or all of the dataset. Whoever takes a pipeline for a new one
        then loads all its rows again."""
        if pipeline == COLLECTOR:  # asked of each round; a round whose files were collected is refused by itself
            return
        version = self.lost.get(pipeline) or self._newest_of(pipeline) or self._oldest_with(pipeline)
        if version is not None:
            raise RolledBack(
                f"version {version} knows pipeline {pipeline!r}, and the newest one does not",
                where=self.location,
                why="the metadata of the schema was replaced, or the table overwritten or restored, by another program",
                fix=f"Restore version {version} or a later one that has the watermark, or decide which rows are in the "
                "table and run `laketier pipeline adopt`. If none of its rows are there, run `laketier pipeline "
                "forget`.",
            )
        if self.erased is None:
            return
        raise RolledBack(
            f"version {self.erased} has rows of laketier's, and nothing of what it kept of its pipelines",
            where=f"{self.location}, pipeline {pipeline!r}",
            why="the metadata of the schema was replaced by another program, so whether the pipeline's rows are there "
            "can't be told",
            fix="Decide which of its rows are in the table, then run `laketier pipeline adopt`. If none are, as the "
            "pipeline is new, run `laketier pipeline forget`.",
        )

    def _newest_of(self, pipeline: str) -> int | None:
        """The version of the newest round of all, if it was the pipeline's: `lost` begins after it."""
        last = number_in(self.metadata, LAST, self.location)
        if not 0 < last <= self.snapshot_id:
            return None
        published = properties_of(read_transaction(self.dataset, last))
        return last if published.get(PIPELINE) == pipeline else None

    def _oldest_with(self, pipeline: str) -> int | None:
        """The oldest version that is retained, if it has the pipeline's watermark. Of versions that a clean-up left, it
        is the surest to be of before the others' change, and of after the pipeline's first round."""
        oldest = versions_of(self.dataset)[0]
        if oldest == self.snapshot_id:
            return None
        try:
            then = metadata_of(self.dataset.checkout_version(oldest))
        except lance_errors() as error:
            if oldest not in versions_of(self.dataset):  # cleaned up meanwhile
                return None
            raise unreadable(self.location, error) from error
        return oldest if watermark_key(pipeline) in then else None

    @cached_property
    def erased(self) -> int | None:
        """The version that was found with our files and without any metadata of ours; None where there was none. A
        table whose rows others replaced, too, has no such files: then nothing would be there twice."""
        return erased_in(self.dataset, self.metadata, self.location)

    @cached_property
    def lost(self) -> Mapping[str, int]:
        """The pipelines whose newest round the table forgot, each with the version that carried it.

        A round names itself as the newest of all (`LAST`), and tells on what earlier ones found (`LOST`). So only what
        came after it is looked at: in most rounds nothing, however long ago a pipeline published.
        """
        found = {
            key.removeprefix(LOST_PREFIX).decode(): number_in(self.metadata, key, self.location)
            for key in self.metadata
            if key.startswith(LOST_PREFIX)
        }
        last = number_in(self.metadata, LAST, self.location)
        # A later one than the table's own came with its metadata from another dataset, and tells nothing of this one.
        known = last if last <= self.snapshot_id else 0
        first = max(known, self.snapshot_id - ROLLBACK_HORIZON) + 1
        for each in rounds_since(self.dataset, self.location, self.metadata, first):
            if self._forgot(each):
                found[each.pipeline] = each.version
        return found

    def _forgot(self, published: LanceRound) -> bool:
        stored = self.metadata.get(watermark_key(published.pipeline))
        if stored is None:
            return True
        watermark = Watermark.from_json(stored)
        # A round may land a version or two later than it was meant to: indexes pass.
        return published.version > (watermark.snapshot_id or 0) and published.commit_id != watermark.commit_id


def erased_in(dataset: LanceDataset, metadata: Mapping[bytes, bytes], location: str) -> int | None:
    """See `LanceTableState.erased`. ``metadata``: of the schema of ``dataset``."""
    if TABLE_UUID in metadata:
        return number_in(metadata, ERASED, location) or None
    files = (file for fragment in dataset.get_fragments() for file in fragment.metadata.files)
    ours = any(attempt_of(f"{DATA}/{data_path(file)}") is not None for file in files)
    return int(dataset.version) if ours else None


def find_commit(dataset: LanceDataset, is_it: Callable[[Transaction], bool], *, after: int) -> int | None:
    """The version later than ``after`` whose transaction ``is_it``, None when none is. Raises `UnknownOutcome` when
    one of them was cleaned up, or has no transaction, so that nobody can tell."""
    for version in range(int(dataset.version), after, -1):
        transaction = read_transaction(dataset, version)
        if transaction is None:
            raise UnknownOutcome(
                f"version {version} was cleaned up, so it is unknown whether the commit landed",
                where=dataset.uri,
                fix="Look for the rows in the table before running the batch again.",
            )
        if is_it(transaction):
            return version
    return None
