"""What may lie in the place of a new table of the embedded catalog: what is left of one that was killed while it was
made or dropped. Anybody's folder may be called ``data``, and a drop deletes all that is in the place."""

from __future__ import annotations

import os
import re
from pathlib import Path

from laketier.kit.local_store import files_below
from laketier_iceberg.writer import attempt_of

_NUMBER = r"[0-9][0-9a-z_]*-"
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.]"
_NAMES = {
    "data": re.compile(rf"(?:{_NUMBER})+{_ID}.+"),
    "metadata": re.compile(rf"(?:snap-)?(?:{_NUMBER})*{_ID}.+"),
}
"""By folder, the names that writers of Iceberg's give their files. An unguessable id alone tells nothing: the plain
files of Spark have one, too, and are called ``part-…``."""


def foreign_in(place: Path) -> list[str]:
    """What is somebody else's, relative to the place. Raises `OSError`."""
    return sorted({*os.listdir(place)} - {*_NAMES}) or sorted(
        path for path in files_below(place, _NAMES) if not _may_be_left(path)
    )


def _may_be_left(path: str) -> bool:
    names = _NAMES[path.partition("/")[0]]
    return attempt_of(path) is not None or names.fullmatch(path.rpartition("/")[2]) is not None
