"""What may lie in the place of a new table: what is left of one that was killed while Lance or laketier made it or
dropped it. Anybody's folder may be called ``data``, and a drop deletes the whole place."""

from __future__ import annotations

import re
from collections.abc import Iterable

from laketier.kit.local_store import files_below
from laketier.kit.storage_errors import naming_storage_errors
from laketier_lance.durable import TRANSACTIONS
from laketier_lance.location import BRANCHES, FOLDERS, PROBE, SIGN, WITNESS, local_path
from laketier_lance.names import DATA, attempt_of
from laketier_lance.sessions import file_session

PLAIN = (DATA, BRANCHES)
"""The folders of Lance's that others may have, too."""

_ROWS = r"([01]{24}[0-9a-f]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}-\d{5,})\.lance"
_DATA_FILE = re.compile(rf"{_ROWS}|[0-9a-f]{{32}}-empty\.lance|\.tmp.*")
_BLOB = re.compile(rf"(?:.+/)?{DATA}/[0-9a-f-]+/[^/]+\.blob")
"""Large values lie in a folder that is called as their data file."""
_HIDDEN = FOLDERS - {*PLAIN}
_OF_ROWS = re.compile(f"{DATA}/{_ROWS}")
_ONTO_A_VERSION = re.compile(rf"{TRANSACTIONS}/[1-9]\d*-[^/]+\.txn")
"""A transaction is named by the version that it is made onto, so these had a dataset. Each version keeps its own until
it is cleaned up, and so does the newest."""


def foreign(paths: Iterable[str]) -> list[str]:
    """Those of the files ``paths``, below the place, that are somebody else's."""
    return sorted(path for path in paths if not _may_be_left(path))


def left_rows(location: str, storage: dict[str, str]) -> str | None:
    """A data file in a place without manifests that may be a lost dataset's; None where there is none. What laketier
    staged counts once a transaction tells that there was a dataset: a task that goes on beside a drop makes the folder
    of data files anew. Raises `StorageError`, and Lance's errors."""
    local = local_path(location)
    if local is not None:
        with naming_storage_errors("a table was looked for"):
            found = list(files_below(local, (DATA, TRANSACTIONS)))
    else:
        session = file_session(location, storage)
        found = [str(name) for folder in (DATA, TRANSACTIONS) for name in session.list(folder)]
    had_versions = any(map(_ONTO_A_VERSION.fullmatch, found))
    rows = (path for path in sorted(found) if _OF_ROWS.fullmatch(path))
    return next((path for path in rows if had_versions or attempt_of(path) is None), None)


def has_sign(location: str, storage: dict[str, str]) -> bool:
    """Whether a drop was begun here and did not end, in an object store: a disk has a rename. Raises Lance's errors."""
    if local_path(location) is not None:
        return False
    return bool(file_session(location, storage).contains(SIGN))


def _may_be_left(path: str) -> bool:
    if path in (PROBE, SIGN) or path.startswith(WITNESS):
        return True
    *folders, name = path.split("/")
    if not _HIDDEN.isdisjoint(folders):
        return True
    return DATA in folders and (_DATA_FILE.fullmatch(name) or _BLOB.fullmatch(path)) is not None
