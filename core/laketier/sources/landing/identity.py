"""Which file is which, whatever it is called: a name may come to lead to another file, and a file may have many
names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laketier.sources.landing.files import FileEntry, Files


def known_otherwise(listed: Files, shared: Any, places: Any, taken: Files) -> dict[int, tuple[str, str]]:
    """The places in ``listed`` of files that are there or were taken under another name: a link to one, or a file that
    was renamed; with their path and that name. ``places``: of each listed file among those ``taken``, -1 where it is
    new."""
    new = np.flatnonzero(places < 0)
    found: dict[int, tuple[str, str]] = {}
    renamed = new[np.isin(listed.inodes[new], taken.inodes[taken.inodes != 0])] if len(taken) else new[:0]
    if len(renamed):
        wanted = np.flatnonzero(np.isin(taken.inodes, listed.inodes[renamed]))
        names = {_identity(taken[at]): taken[at].path for at in wanted.tolist()}
        for at in renamed.tolist():
            one = listed[at]
            if (name := names.get(_identity(one))) is not None:
                found[at] = (one.path, name)
    if shared.any():
        # What was taken keeps its place, then comes what has one name; of the others the first by name is the file.
        first: dict[tuple[int, int, int], str] = {}
        order = sorted(range(len(listed)), key=lambda at: (places[at] < 0, bool(shared[at]), listed[at].path))
        for at in order:
            one = listed[at]
            name = first.setdefault(_identity(one), one.path)
            if name != one.path and places[at] < 0 and shared[at]:
                found.setdefault(at, (one.path, name))
    return found


def replaced(listed: Files, known: Any, taken: Files, ordinals: Any) -> Sequence[str]:
    """The paths of files that are others than those taken under their names, though of the same size and time."""
    before, now = taken.inodes[ordinals], listed.inodes[known]
    same = (listed.sizes[known] == taken.sizes[ordinals]) & (listed.mtimes[known] == taken.mtimes[ordinals])
    return [listed[at].path for at in known[same & (before != 0) & (now != 0) & (before != now)].tolist()]


def _identity(one: FileEntry) -> tuple[int, int, int]:
    return (one.inode, one.size, one.mtime_ns)
