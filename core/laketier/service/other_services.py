"""Notices another service that tiers the same lake table: it has the same name, and a state database of its own.

The fences of two such services may go in step, so that neither sees one that is too high. Their epochs can't.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from laketier.service.state import Lease

log = logging.getLogger(__name__)

ANOTHER = (
    "Another service with the same name, and a state database of its own, tiers this table, too: stop one of them, or "
    "give both the same `state`"
)


@dataclass
class PublishedEpochs:
    """The epoch that this worker published last, of each table that nobody else of its service had since. Safe in
    threads."""

    _last: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the table's name, its fence and its epoch: fences go on where the source makes a table anew."""
    _told: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def compare(self, lease: Lease, lake: int) -> None:
        """Say so, once for each table, where the lake table has an epoch ``lake`` that nobody of this service can have
        published: the lake refuses what is late of an older lease."""
        name = lease.table.name
        with self._lock:
            fence, epoch = self._last.get(name, (0, lake))
            # Each lease counts the fence up by one: with a gap, another worker had the table in between.
            if lease.fence != fence + 1 or lake <= epoch or name in self._told:
                return
            self._told.add(name)
        log.warning(
            "[table=%s] the lake table has epoch %d, and this worker, which had the last lease too, published %d. %s. "
            "Or a person changed the pipeline. No row is lost or repeated: the lake table's watermark decides",
            name, lake, epoch, ANOTHER,
        )  # fmt: skip

    def ended(self, lease: Lease, epoch: int | None) -> None:
        """Record that a round under ``lease`` published ``epoch``, or, with None, found nothing to do."""
        name = lease.table.name
        with self._lock:
            if epoch is not None:
                self._last[name] = lease.fence, epoch
            elif name in self._last and self._last[name][0] == lease.fence - 1:
                self._last[name] = lease.fence, self._last[name][1]
