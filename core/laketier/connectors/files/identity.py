"""The identity of files, independent of their names: a name may come to lead to another file, and a file may have
many names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laketier.connectors.files.files import Files, Numbers


def renamed(listed: Files, places: Numbers, taken: Files) -> tuple[Numbers, Numbers]:
    """Files that were taken, and are there under a new name alone: their places in ``listed``, and among those
    ``taken``. ``places``: of each listed file among those ``taken``, -1 where it is new."""
    at = _with_inodes(listed, np.flatnonzero(places < 0))
    at = at[np.isin(listed.inodes[at], taken.inodes)]
    if not len(at):
        return at, at
    there = np.zeros(len(taken), bool)
    there[places[places >= 0]] = True
    gone = np.flatnonzero(~there & np.isin(taken.inodes, listed.inodes[at]))
    at = at[pc.sort_indices(listed.paths.take(pa.array(at))).to_numpy()]  # of several new names the first
    first = _first_of(_identities(listed, at), of=_identities(taken, gone))
    found = np.flatnonzero(first >= 0)
    ordinals, once = np.unique(first[found], return_index=True)
    return at[found[once]], gone[ordinals]


def known_otherwise(listed: Files, shared: Any, places: Numbers, taken: Files) -> dict[int, tuple[str, str]]:
    """The places in ``listed`` of files that are there or were taken under another name: a link to one, or one that was
    renamed; with their path and that name. ``places``: of each listed file among those ``taken``, -1 where it is
    new. ``shared``: whether it may have another name."""
    found: dict[int, tuple[str, str]] = {}
    new = _with_inodes(listed, np.flatnonzero(places < 0))
    if not len(new):
        return found
    before = new[np.isin(listed.inodes[new], taken.inodes)]
    if len(before):
        wanted = np.flatnonzero(np.isin(taken.inodes, listed.inodes[before]))
        first = _first_of(_identities(listed, before), of=_identities(taken, wanted))
        for at, one in zip(before[first >= 0].tolist(), wanted[first[first >= 0]].tolist(), strict=True):
            found[at] = (listed[at].path, taken[one].path)
    # One that is renamed while the folder is listed may be in the listing twice.
    inodes, times = np.unique(listed.inodes, return_counts=True)
    again = new[np.isin(listed.inodes[new], inodes[times > 1])]
    if len(again):
        alike = np.flatnonzero(np.isin(listed.inodes, listed.inodes[again]))
        # What was taken keeps its place, then comes what has one name; of the others the first by name is the file.
        ranks = 2 * (places[alike] < 0) + shared[alike]
        columns = pa.table({"rank": ranks, "path": listed.paths.take(pa.array(alike))})
        order = alike[pc.sort_indices(columns, [("rank", "ascending"), ("path", "ascending")]).to_numpy()]
        identities = _identities(listed, order)
        for at, one in zip(order.tolist(), order[_first_of(identities, of=identities)].tolist(), strict=True):
            if at != one and places[at] < 0:
                found.setdefault(at, (listed[at].path, listed[one].path))
    return found


def replaced(listed: Files, known: Any, taken: Files, ordinals: Any) -> Sequence[str]:
    """The paths of files that are others than those taken under their names, though of the same size and time."""
    before, now = taken.inodes[ordinals], listed.inodes[known]
    same = (listed.sizes[known] == taken.sizes[ordinals]) & (listed.mtimes[known] == taken.mtimes[ordinals])
    return [listed[at].path for at in known[same & (before != 0) & (now != 0) & (before != now)].tolist()]


def _with_inodes(files: Files, at: Numbers) -> Numbers:
    """Those that can be told from others."""
    return at[files.inodes[at] != 0]


def _identities(files: Files, at: Numbers) -> pa.Array:
    """What tells each file from others, as bytes of one length."""
    columns = np.ascontiguousarray(np.stack([files.inodes[at], files.sizes[at], files.mtimes[at]], axis=1))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(24), len(at), [None, pa.py_buffer(columns.tobytes())])


def _first_of(these: pa.Array, *, of: pa.Array) -> Numbers:
    """For each, where it is first there ``of`` those; -1 where it is not."""
    found = pc.fill_null(pc.index_in(these, value_set=of), -1)
    return found.to_numpy(zero_copy_only=False).astype(np.int64)
