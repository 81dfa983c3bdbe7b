"""What `LanceCommitter.open` saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from laketier.spi import RolledBack, TableState, UnknownOutcome, Watermark, schema_fingerprint
from laketier_lance.dataset import LANCE_ERRORS, reason
from laketier_lance.lance_schema import with_field_ids
from laketier_lance.table import COMMIT_ID, PIPELINE, metadata_of, table_uuid, watermark_key

if TYPE_CHECKING:
    from lance import LanceDataset

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
        after = self.attempted_at
        if after is None:
            after = 0
        return find_commit(self.dataset, commit_id, after=after) is not None

    def _refuse_rollback(self, watermark: Watermark) -> None:
        """A restore brings back an older watermark. Then a later version carried a newer one of the pipeline."""
        carrier = watermark.snapshot_id or 0
        for version in range(max(carrier + 1, self.snapshot_id - ROLLBACK_HORIZON + 1), self.snapshot_id + 1):
            properties = _properties(self.dataset, version)
            if properties is None or properties.get(PIPELINE) != watermark.token.pipeline:
                continue
            if properties.get(COMMIT_ID) != watermark.commit_id:
                raise RolledBack(
                    f"version {version} published a later epoch of pipeline {watermark.token.pipeline!r} than epoch "
                    f"{watermark.token.epoch}, which the table knows now",
                    where=self.location,
                    why="the table was restored to an older version, or overwritten with one",
                    fix="Decide which rows are in the table, then run `laketier pipeline adopt`, or restore the "
                    f"version {version} or a later one.",
                )


def find_commit(dataset: LanceDataset, commit_id: str, *, after: int) -> int | None:
    """The version later than ``after`` that the commit made, None when none did. Raises `UnknownOutcome` when one of
    them was cleaned up, or has no transaction, so that nobody can tell."""
    for version in range(int(dataset.version), after, -1):
        properties = _properties(dataset, version)
        if properties is None:
            raise UnknownOutcome(
                f"version {version} was cleaned up, so whether commit {commit_id} made it can't be told",
                where=dataset.uri,
                fix="Look for the rows in the table before running the batch again.",
            )
        if properties.get(COMMIT_ID) == commit_id:
            return version
    return None


def _properties(dataset: LanceDataset, version: int) -> Mapping[str, str] | None:
    """The properties of the transaction that made ``version``; None when it can't be read any more."""
    try:
        transaction = dataset.read_transaction(version)
    except LANCE_ERRORS as error:
        if "not found" in reason(error).lower():
            return None
        raise
    return None if transaction is None else (transaction.transaction_properties or {})
