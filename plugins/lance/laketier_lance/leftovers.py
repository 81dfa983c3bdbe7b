"""What may lie in the place of a new table: what is left of one that was killed while Lance or laketier made it or
dropped it. Anybody's folder may be called ``data``, and a drop deletes the whole place."""

from __future__ import annotations

import re
from collections.abc import Iterable

from laketier_lance.location import BRANCHES, FOLDERS
from laketier_lance.writer import DATA

PLAIN = (DATA, BRANCHES)
"""The folders of Lance's that others may have, too."""

_DATA_FILE = re.compile(
    r"([01]{24}[0-9a-f]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}-(\d{5,}|empty))\.lance|\.tmp.*"
)
_BLOB = re.compile(rf"(?:.+/)?{DATA}/[0-9a-f-]+/[^/]+\.blob")
"""Large values lie in a folder that is called as their data file."""
_HIDDEN = FOLDERS - {*PLAIN}


def foreign(paths: Iterable[str]) -> list[str]:
    """Those of the files ``paths``, below the place, that are somebody else's."""
    return sorted(path for path in paths if not _may_be_left(path))


def _may_be_left(path: str) -> bool:
    *folders, name = path.split("/")
    if not _HIDDEN.isdisjoint(folders):
        return True
    return DATA in folders and (_DATA_FILE.fullmatch(name) or _BLOB.fullmatch(path)) is not None
