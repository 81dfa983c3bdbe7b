"""Orphan collection: what failed attempts left behind is deleted, and nothing that is, or will be, published.

Age alone can't tell a dead attempt from a slow one, and nobody knows all live rounds. So the collector takes the right
to publish away before it deletes:

1. It lists the orphans that are older than the grace period, by the storage's clock.
2. It raises the table's **horizon** (`laketier.tiering.horizon`) by a commit: no attempt that began before it is ever
   published again, as each round compares its attempts with the horizon of the very state that it publishes against.
3. It lists again. A commit that landed before the horizon is seen now, and its files are no orphans.
4. It deletes what is in both lists, but nothing of an attempt that did not begin before the horizon: that one may still
   be published, as the clock of the host that staged it is ahead.

So no clock can make it lose a row; docs/adr/0016 goes through all that may be wrong. Its own host's clock has no part
in it: the storage is asked for the time. Writers other than laketier know no horizon: against them only the grace
period helps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    CommitterInitContext,
    LakeCommitter,
    LakeMaintenance,
    LakeStorage,
    OrphanFile,
    TableInfo,
    attempt_began_at,
    host_time,
    new_attempt_id,
)
from laketier.tiering.failpoints import ORPHANS_FENCED, ORPHANS_LISTED, ORPHANS_SELECTED, failpoint
from laketier.tiering.horizon import clock_of, horizon_of, raise_horizon

log = logging.getLogger(__name__)

DEFAULT_GRACE = timedelta(days=3)
_MOST_MARGIN = timedelta(hours=1)
_EVER = 1 << 53


@dataclass(frozen=True)
class Collection:
    """The orphans that a collection found, and those that it deletes. ``horizon``: ms since the epoch; None if it
    was not set. ``at``: when it was, by the clock that ages were told by. ``ahead``: files that are old enough, of
    attempts that did not begin before the horizon: they are left until it has reached them."""

    orphans: tuple[OrphanFile, ...]
    removed: tuple[OrphanFile, ...] = ()
    horizon: int | None = None
    at: int = 0
    ahead: tuple[OrphanFile, ...] = ()


def list_orphans(storage: LakeStorage, table: TableInfo, *, grace: timedelta = DEFAULT_GRACE) -> Collection:
    """What `collect_orphans` would look at now, if this host's clock is right: asking the storage for the time takes a
    file, and this changes nothing. Driver."""
    now = host_time()
    with naming_storage_errors("orphans were listed"):
        found = storage.maintenance(table).orphans(now - _milliseconds(grace))
    return Collection(tuple(sorted(found)), at=now)


def collect_orphans(storage: LakeStorage, table: TableInfo, *, grace: timedelta = DEFAULT_GRACE) -> Collection:
    """Delete the orphans that are older than ``grace``. Driver.

    A round whose files were staged that long ago, and which is not published yet, will be refused (`Collected`).
    Raises `FeatureNotSupported`, and `Conflict`, `NotBegun` or `UnknownOutcome` when the horizon could not be set; then
    nothing is deleted.
    """
    maintenance = storage.maintenance(table)
    factory = storage.tiering_factory(table)
    committer = factory.create_committer(CommitterInitContext(commit_id=new_attempt_id()))
    try:
        with naming_storage_errors("orphans were listed"):
            now = _storage_time(committer, maintenance)
            before = now - _milliseconds(grace)
            listed = sorted(maintenance.orphans(before))
        failpoint(ORPHANS_LISTED)
        if not listed:
            return Collection((), at=now)
        horizon = before + _milliseconds(min(grace / 2, _MOST_MARGIN))
        with naming_storage_errors("the table was read"):
            barred = max(horizon, horizon_of(committer.open(), clock_of(committer)) or 0)
        found = _began_before(barred, listed)
        ahead = tuple(sorted(set(listed) - set(found)))
        if ahead:
            log.warning(
                "orphans left: %d; by their names they were staged after now, by a clock that is ahead", len(ahead)
            )
        if not found:
            return Collection((), at=now, ahead=ahead)
        horizon = raise_horizon(factory, table.table_uuid, horizon, newest=now, clock=clock_of(committer))
    finally:
        committer.close()
    failpoint(ORPHANS_FENCED)
    with naming_storage_errors("orphans were listed"):
        selected = _began_before(horizon, _still(found, maintenance.orphans(before)))
    failpoint(ORPHANS_SELECTED)
    with naming_storage_errors("orphans were deleted"):
        removed = tuple(maintenance.remove_orphans(selected))
    log.info(
        "orphans gone: %d of %d, %d bytes, deleted here or by another collection meanwhile",
        len(removed), len(found), sum(file.bytes for file in removed),
    )  # fmt: skip
    return Collection(tuple(found), removed, horizon, now, ahead)


def _storage_time(committer: LakeCommitter[Any], maintenance: LakeMaintenance) -> int:
    told = committer.storage_time()
    if told is not None:
        return told
    # The newest orphan was written before now, by the clock that its age is told by; this host's may be ahead.
    return min(host_time(), max((file.modified_at for file in maintenance.orphans(_EVER)), default=0))


def _still(found: Sequence[OrphanFile], now: Sequence[OrphanFile]) -> list[OrphanFile]:
    left = {file.path for file in now}
    return [file for file in found if file.path in left]


def _began_before(horizon: int, files: Iterable[OrphanFile]) -> list[OrphanFile]:
    """Those whose attempts the horizon bars, and those that belong to no attempt."""
    return [file for file in files if file.attempt is None or attempt_began_at(file.attempt) < horizon]


def _milliseconds(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
