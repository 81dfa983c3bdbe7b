"""What a log of files tells whoever runs it of the folder that it listed: each thing once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laketier.connectors.files.files import Files
from laketier.connectors.files.identity import replaced
from laketier.connectors.files.local import escaped
from laketier.connectors.files.options import LandingTableOptions, OnRewritten, Order
from laketier.connectors.files.whereabouts import rewritten

log = logging.getLogger(__name__)

_CLOCKS_DIFFER = 60 * 10**9  # by so many ns clocks may differ without a word
_NAMED = 3  # so many files are named in a message


class Notices:
    """Of one table, on the driver. What was said before is not said again by the same object."""

    def __init__(self, table: str, options: LandingTableOptions) -> None:
        self._name = table
        self._table = escaped(table)
        self._options = options
        self._told: set[str] = set()
        self._told_ahead = 0

    def left_out(self, why: Mapping[str, str]) -> None:
        """``why``: by the paths of files that are not taken, the reasons."""
        for path, reason in why.items():
            if path not in self._told:
                self._told.add(path)
                log.warning("%s: %s is left out: %s", self._table, path, reason)

    def renamed(self, listed: Files, moved: Any, taken: Files, ordinals: Any) -> None:
        """The files ``moved`` of ``listed`` are those of ``taken`` at ``ordinals``, by other names."""
        both = zip(listed.paths.take(pa.array(moved)).to_pylist(), ordinals.tolist(), strict=True)
        new = [(path, taken[ordinal].path) for path, ordinal in both if path not in self._told]
        if new:
            self._told.update(path for path, _ in new)
            named = ", ".join(f"{escaped(name)} is {escaped(path)} now" for path, name in new[:_NAMED])
            # A disk gives the number of a deleted file to the next one. Times that a program sets are whole seconds.
            sure = bool((listed.mtimes[moved] % 10**9).all())
            doubt = "" if sure else ". If they are new files of the same size and time, copy them to another name"
            level = logging.INFO if sure else logging.WARNING
            said = "%s: %d files were renamed after they were taken: %s%s"
            log.log(level, said, self._table, len(new), named, doubt)

    def ahead(self, files: Files, now: int) -> None:
        """``now``: this host's clock, in ns. A driver that is behind would hold files back for as long, and nobody
        would know why."""
        ahead = int(np.count_nonzero(files.mtimes > now + _CLOCKS_DIFFER))
        if ahead and ahead != self._told_ahead:
            log.warning(
                "%s: %d files have times in the future of this host's clock, so read.min-age delays them until then: "
                "the clock is behind the storage's, or somebody set the files' times",
                self._table,
                ahead,
            )
        self._told_ahead = ahead

    def late(self, new: Files, taken: Files) -> None:
        """Which of the ``new`` files would have come before some that were ``taken``."""
        if not len(taken):
            return
        if self._options.order is Order.TIME:
            late = np.flatnonzero(new.mtimes < taken.mtimes.max())
        else:
            late = np.flatnonzero(pc.less(new.paths, pc.max(taken.paths)).to_numpy(zero_copy_only=False))
        if len(late):
            named = ", ".join(escaped(new[at].path) for at in late[:_NAMED])
            log.info("%s: %d files are late, they are taken now: %s", self._table, len(late), named)

    def rewritten(self, listed: Files, places: Any, taken: Files) -> None:
        """``places``: those of the ``listed`` files among the ``taken``, -1 for a new one. Raises `OffsetsRewritten`
        for one that has changed since, unless on-rewritten is ``ignore``."""
        known = np.flatnonzero(places >= 0)
        ordinals = places[known]
        differs = (listed.sizes[known] != taken.sizes[ordinals]) | (listed.mtimes[known] != taken.mtimes[ordinals])
        for at, ordinal in zip(known[differs], ordinals[differs], strict=True):
            error = rewritten(taken[ordinal], listed[at], int(ordinal), self._name)
            if error.where not in self._told:
                self._told.add(str(error.where))
                log.warning("%s", error)
            if self._options.on_rewritten is OnRewritten.FAIL:
                raise error
        others = [path for path in replaced(listed, known, taken, ordinals) if path not in self._told]
        if others:
            self._told.update(others)
            log.warning(
                "%s: %d files were replaced by others of the same size and time, unless their file system was mounted "
                "again: %s. Land new data under a new name.",
                self._table,
                len(others),
                ", ".join(map(escaped, others[:_NAMED])),
            )
