"""What may lie in the place of a new table of the embedded catalog: what is left of one that was killed while it was
made or dropped. Anybody's folder may be called ``data``, and a drop deletes all that is in the place."""

from __future__ import annotations

import os
import re
from pathlib import Path

from laketier.kit.local_store import files_below
from laketier_iceberg.writer import attempt_of

_FOLDERS = ("data", "metadata")
_UNGUESSABLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def foreign_in(place: Path) -> list[str]:
    """What is somebody else's, relative to the place. Raises `OSError`."""
    return sorted({*os.listdir(place)} - {*_FOLDERS}) or sorted(
        path for path in files_below(place, _FOLDERS) if not _may_be_left(path)
    )


def _may_be_left(path: str) -> bool:
    """Whatever writes Iceberg's files gives them unguessable names."""
    return attempt_of(path) is not None or _UNGUESSABLE.search(path.rpartition("/")[2]) is not None
