"""The files that the versions of a dataset refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laketier_lance.dataset import read_transaction, recent_transactions
from laketier_lance.location import BRANCHES
from laketier_lance.names import DATA
from laketier_lance.private import data_path
from laketier_lance.versions import branches_of, manifests_of, refuse_unlisted

if TYPE_CHECKING:
    from lance import LanceDataset

_ROWS = 65_536


def needed(dataset: LanceDataset, paths: Sequence[str]) -> set[str]:
    """Those of the data files ``paths`` that any version needs, on any branch. It reads each manifest once."""
    names = {path: path.rpartition("/")[2] for path in paths}
    # A base need not be the root of a dataset; then its files are named without ``data/``.
    wanted = pa.array([*names, *names.values()], pa.string())
    found = tracked(dataset, wanted)
    for branch in branches_of(dataset):
        found |= tracked(dataset.checkout_version((branch, None)), wanted, f"{BRANCHES}/{branch}/")
    return {path for path, name in names.items() if not found.isdisjoint((path, name))}


def named_since(dataset: LanceDataset, paths: Sequence[str], after: int) -> set[str]:
    """Those of the data files ``paths`` that a version behind ``after`` added. Reads the transaction of each; where one
    was cleaned up, all versions that are left, as the files go with the last version that needs them."""
    last = int(dataset.version)
    transactions = recent_transactions(dataset, last - after)
    transactions += [read_transaction(dataset, version) for version in range(last - len(transactions), after, -1)]
    fragments = (each for it in transactions if it is not None for each in getattr(it.operation, "fragments", ()))
    found = set(paths).intersection(f"{DATA}/{data_path(file)}" for each in fragments for file in each.files)
    return found | needed(dataset, paths) if None in transactions else found


def tracked(dataset: LanceDataset, wanted: pa.Array, folder: str = "") -> set[str]:
    """Those of the paths ``wanted`` that any version on the dataset's branch, in ``folder``, refers to. Raises
    `StorageError` unless each of its manifests was read: what only an unread one refers to would be deleted."""
    manifests = manifests_of(dataset, folder)
    wanted = pa.concat_arrays([wanted, pa.array(manifests, pa.string())])
    found: set[str] = set()
    for paths in _paths(dataset, max(_ROWS, len(wanted))):
        found.update(pc.unique(paths.filter(pc.is_in(paths, value_set=wanted))).to_pylist())
    refuse_unlisted(dataset, manifests - found, partial(manifests_of, folder=folder))
    return found


def _paths(dataset: LanceDataset, rows: int) -> Iterator[pa.ChunkedArray]:
    """The paths that the versions refer to, again for each version, at least ``rows`` at a time."""
    paths: list[pa.Array] = []
    count = 0
    for batch in dataset.tracked_files():
        paths.append(batch.column("path"))
        count += batch.num_rows
        if count >= rows:
            yield pa.chunked_array(paths)
            paths, count = [], 0
    yield pa.chunked_array(paths, pa.string())
