"""Orphan collection: what failed attempts left behind is deleted, and nothing that is, or will be, published.

Age alone can't tell a dead attempt from a slow one, and nobody knows all live rounds. So the collector takes the right
to publish away before it deletes:

1. It lists the orphans that are older than the grace period.
2. It raises the table's **horizon** (`laketier.tiering.horizon`) by a commit: no attempt that began before it is ever
   published again, as each round compares its attempts with the horizon of the very state that it publishes against.
3. It lists again. A commit that landed before the horizon is seen now, and its files are no orphans.
4. It deletes what is in both lists.

The horizon lies a margin *after* the time before which files are deleted, as the first is compared with the clocks of
executors and the second with the storage's. Writers other than laketier know no horizon: against them only the grace
period helps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from laketier.spi import LakeStorage, OrphanFile, TableInfo
from laketier.spi.storage_errors import naming_storage_errors
from laketier.tiering.failpoints import ORPHANS_FENCED, ORPHANS_LISTED, ORPHANS_SELECTED, failpoint
from laketier.tiering.horizon import raise_horizon

log = logging.getLogger(__name__)

DEFAULT_GRACE = timedelta(days=3)
_MOST_MARGIN = timedelta(hours=1)


@dataclass(frozen=True)
class Collection:
    """What a collection found, and what of it is deleted. ``horizon``: ms since the epoch; None if it was not set."""

    orphans: tuple[OrphanFile, ...]
    removed: tuple[OrphanFile, ...] = ()
    horizon: int | None = None


def list_orphans(storage: LakeStorage, table: TableInfo, *, grace: timedelta = DEFAULT_GRACE) -> Collection:
    """What `collect_orphans` would look at now. Changes nothing. Driver."""
    with naming_storage_errors("orphans were listed"):
        found = storage.maintenance(table).orphans(_now() - _milliseconds(grace))
    return Collection(tuple(sorted(found)))


def collect_orphans(storage: LakeStorage, table: TableInfo, *, grace: timedelta = DEFAULT_GRACE) -> Collection:
    """Delete the orphans that are older than ``grace``. Driver.

    A round whose files were staged that long ago, and which is not published yet, will be refused (`Collected`).
    Raises `FeatureNotSupported`, and `Conflict` or `UnknownOutcome` when the horizon could not be set; then nothing is
    deleted.
    """
    maintenance = storage.maintenance(table)
    before = _now() - _milliseconds(grace)
    with naming_storage_errors("orphans were listed"):
        found = sorted(maintenance.orphans(before))
    failpoint(ORPHANS_LISTED)
    if not found:
        return Collection(())
    margin = _milliseconds(min(grace / 2, _MOST_MARGIN))
    horizon = raise_horizon(storage.tiering_factory(table), table.table_uuid, before + margin)
    failpoint(ORPHANS_FENCED)
    with naming_storage_errors("orphans were listed"):
        selected = _still(found, maintenance.orphans(before))
    failpoint(ORPHANS_SELECTED)
    with naming_storage_errors("orphans were deleted"):
        removed = tuple(maintenance.remove_orphans(selected))
    log.info("deleted %d of %d orphans, %d bytes", len(removed), len(found), sum(file.bytes for file in removed))
    return Collection(tuple(found), removed, horizon)


def _still(found: Sequence[OrphanFile], now: Sequence[OrphanFile]) -> list[OrphanFile]:
    left = {file.path for file in now}
    return [file for file in found if file.path in left]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _milliseconds(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
