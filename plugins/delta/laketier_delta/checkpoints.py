"""Checkpoints of the Delta log, and the clean-up of entries that they take the place of. Driver."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from laketier.spi import host_time, time_of_storage
from laketier_delta.altering import make_durable
from laketier_delta.engine import open_table, panics_as_errors
from laketier_delta.location import Location
from laketier_delta.protocol import CHECKPOINT_INTERVAL, integer_property

if TYPE_CHECKING:
    from deltalake import DeltaTable

log = logging.getLogger(__name__)

_TRUSTED = 86_400_000
"""By so many ms a host's clock may be off while log entries and tombstones, which live for days, are cleaned up."""


def checkpoint_when_due(handle: DeltaTable, location: Location, version: int, interval: int) -> None:
    """Make a checkpoint after ``version`` was committed on ``handle``, where that is a multiple of the table's
    interval, or of ``interval`` where its properties name none. Raises nothing: what fails is logged, as the commit has
    landed."""
    configuration = handle.metadata().configuration
    every = integer_property(configuration, CHECKPOINT_INTERVAL, interval)
    if every < 1 or version % every:
        return
    try:
        off = host_time() - time_of_storage(location.filesystem, location.root)
        if abs(off) > _TRUSTED:
            log.warning(
                "version %d is committed, and no checkpoint of it is made: this host's clock is %.1f days off that "
                "of the storage, and delta-rs would forget transactions, tombstones and log entries by it",
                version,
                off / 86_400_000,
            )
            return
        newest = open_table(location)
        with panics_as_errors():
            newest.create_checkpoint()
            # Before entries go that it takes the place of.
            make_durable(location, newest.version())
            if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
                newest.cleanup_metadata()
    except Exception:  # the commit has landed: nothing that fails now may make that unknown
        log.warning("version %d is committed, but its checkpoint failed; reading gets slower", version, exc_info=True)
