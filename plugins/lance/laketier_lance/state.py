"""What `LanceCommitter.open` saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from laketier.spi import RolledBack, TableState, UnknownOutcome, Watermark, schema_fingerprint
from laketier_lance.dataset import read_transaction, recent_transactions
from laketier_lance.lance_schema import with_field_ids
from laketier_lance.table import COMMIT_ID, LAST, LOST_PREFIX, PIPELINE, metadata_of, table_uuid, watermark_key

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

ROLLBACK_HORIZON = 256
"""Versions that are looked at, at most, for a watermark that a restore took away."""


@dataclass(frozen=True)
class LanceTableState(TableState):
    """A dataset at one version, and its schema metadata. ``attempted_at`` is the version that this round's first
    attempt to publish was made against, None before it."""

    dataset: LanceDataset
    location: str
    metadata: Mapping[bytes, bytes]
    attempted_at: int | None

    @classmethod
    def of(cls, dataset: LanceDataset, location: str, attempted_at: int | None) -> LanceTableState:
        """The state of ``dataset`` at the version it was opened at."""
        return cls(dataset, location, metadata_of(dataset), attempted_at)

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
            return None
        watermark = Watermark.from_json(stored)
        self._refuse_rollback(watermark)
        return watermark

    def landed(self, commit_id: str) -> bool:
        def is_it(transaction: Transaction) -> bool:
            return _properties(transaction).get(COMMIT_ID) == commit_id

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

    @cached_property
    def lost(self) -> Mapping[str, int]:
        """The pipelines whose newest round the table forgot, each with the version that carried it.

        A round names itself as the newest of all (`LAST`), and tells on what earlier ones found (`LOST`). So only what
        came after it is looked at: in most rounds nothing, however long ago a pipeline published.
        """
        found = {
            key.removeprefix(LOST_PREFIX).decode(): int(value)
            for key, value in self.metadata.items()
            if key.startswith(LOST_PREFIX)
        }
        for version, transaction in self._transactions_since(int(self.metadata.get(LAST, b"0"))):
            properties = {} if transaction is None else _properties(transaction)
            if PIPELINE in properties and self._forgot(properties, version):
                found[properties[PIPELINE]] = version
        return found

    def _forgot(self, properties: Mapping[str, str], version: int) -> bool:
        stored = self.metadata.get(watermark_key(properties[PIPELINE]))
        if stored is None:
            return True
        watermark = Watermark.from_json(stored)
        # A round may land a version or two later than it was meant to: indexes pass.
        return version > (watermark.snapshot_id or 0) and properties.get(COMMIT_ID) != watermark.commit_id

    def _transactions_since(self, last: int) -> Iterator[tuple[int, Transaction | None]]:
        """Of the versions after ``last`` that can still be read, within the horizon, the oldest first.

        They are asked for in one call, which ends at a version that was cleaned up. Tags may hold older ones: one
        listing tells which, as to ask for each costs as much as to read it, and others may have made thousands.
        """
        first = max(last, self.snapshot_id - ROLLBACK_HORIZON) + 1
        recent = recent_transactions(self.dataset, self.snapshot_id + 1 - first)
        older = range(first, self.snapshot_id + 1 - len(recent))
        retained = {int(reference["version"]) for reference in self.dataset.version_refs()} if older else set()
        for version in older:
            if version in retained:
                yield version, read_transaction(self.dataset, version)
        yield from zip(range(older.stop, self.snapshot_id + 1), reversed(recent), strict=True)


def find_commit(dataset: LanceDataset, is_it: Callable[[Transaction], bool], *, after: int) -> int | None:
    """The version later than ``after`` whose transaction ``is_it``, None when none is. Raises `UnknownOutcome` when
    one of them was cleaned up, or has no transaction, so that nobody can tell."""
    for version in range(int(dataset.version), after, -1):
        transaction = read_transaction(dataset, version)
        if transaction is None:
            raise UnknownOutcome(
                f"version {version} was cleaned up, so whether the commit made it can't be told",
                where=dataset.uri,
                fix="Look for the rows in the table before running the batch again.",
            )
        if is_it(transaction):
            return version
    return None


def _properties(transaction: Transaction) -> Mapping[str, str]:
    return transaction.transaction_properties or {}
