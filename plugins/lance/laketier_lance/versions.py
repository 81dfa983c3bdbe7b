"""The versions and branches that a dataset has: all of them, or an error.

Lance leaves out of its listings a file that the storage could not tell of. Of a dataset in a local folder the kernel
lists the names as well, and what is missing then is no absence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from laketier.kit.looks import names_in
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import StorageError, TableNotFound
from laketier_lance.durable import VERSIONS
from laketier_lance.location import local_path

if TYPE_CHECKING:
    from lance import LanceDataset

_MANIFEST = ".manifest"
_BRANCHES = "_refs/branches"
_NEWEST_FIRST = 20
"""Digits of the newer names, which count down from 2^64 - 1."""


def versions_of(dataset: LanceDataset) -> list[int]:
    """The versions on the main branch, oldest first: one at least. Driver. Raises Lance's errors, `StorageError` where
    some could not be listed, and `TableNotFound` for a dataset that was dropped after it was opened."""
    there = manifests_of(dataset, "")
    found = {int(reference["version"]) for reference in dataset.version_refs()}
    refuse_unlisted(dataset, {name for name in there if _version(name) not in found}, partial(manifests_of, folder=""))
    if not found:
        raise TableNotFound("the table was dropped meanwhile", where=dataset.uri)
    return sorted(found)


def branches_of(dataset: LanceDataset) -> list[str]:
    """The names of the dataset's branches. Raises as `versions_of`."""
    there = _branch_files(dataset)
    found = list(dataset.branches.list())
    if len(there) > len(found):
        refuse_unlisted(dataset, there, _branch_files)
    return found


def manifests_of(dataset: LanceDataset, folder: str) -> set[str]:
    """The manifests that the kernel lists in a branch's ``folder``: ``tree/NAME/``, or nothing for the main branch.
    Their paths are relative to it. None in a store, where a listing is one request that fails as a whole."""
    names = _names(dataset, f"{folder}{VERSIONS}")
    return {f"{VERSIONS}/{name}" for name in names if name.removesuffix(_MANIFEST).isdecimal()}


def refuse_unlisted(dataset: LanceDataset, missing: set[str], there: Callable[[LanceDataset], set[str]]) -> None:
    """Raise `StorageError` when any file of ``missing`` is there still: others may have cleaned it up meanwhile."""
    left = missing & there(dataset) if missing else missing
    if left:
        raise StorageError(
            "Lance did not list all files of the dataset",
            where=f"{dataset.uri}/{min(left)}",
            why=f"the storage could not tell of it, nor of {len(left) - 1} others",
            fix="Look for errors of the disk or the mount, then try again. Nothing was deleted.",
        )


def _branch_files(dataset: LanceDataset) -> set[str]:
    return {f"{_BRANCHES}/{name}" for name in _names(dataset, _BRANCHES) if name.endswith(".json")}


def _names(dataset: LanceDataset, folder: str) -> list[str]:
    root = local_path(dataset.uri)
    with naming_storage_errors("listing the files of a dataset"):
        return [] if root is None else names_in(Path(root) / folder)


def _version(manifest: str) -> int:
    name = manifest.removeprefix(f"{VERSIONS}/").removesuffix(_MANIFEST)
    return (1 << 64) - 1 - int(name) if len(name) == _NEWEST_FIRST else int(name)
