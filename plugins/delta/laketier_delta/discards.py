"""Deleting what was staged and did not land."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from laketier.kit.staged import own_paths, remove
from laketier.spi import LaketierError, WriteResult
from laketier_delta.layout import attempt_of
from laketier_delta.location import Location
from laketier_delta.references import live

log = logging.getLogger(__name__)


def discard(location: Location, columns: Sequence[str], results: Sequence[WriteResult]) -> None:
    """For `LakeCommitter.discard`, of a table that is partitioned by ``columns``. Whoever calls this is certain that
    nothing landed. A look at the newest version costs little, and the mistake, or an old result that somebody hands
    over again, would cost rows."""
    own = own_paths(results, lambda path: attempt_of(path, columns), where=location.uri)
    if not own:
        return
    names = {path.rpartition("/")[2]: path for path in own}
    try:
        kept = live(location.filesystem, location.root, names)
    except (LaketierError, OSError):
        log.warning(
            "%s: the log can't be read, so nothing was deleted; orphan collection will find it",
            location.uri,
            exc_info=True,
        )
        return
    for name in kept:
        log.error("%s: %s was to be discarded, and is in the table: kept", location.uri, names[name])
    remove(location.folder, [path for name, path in names.items() if name not in kept])
