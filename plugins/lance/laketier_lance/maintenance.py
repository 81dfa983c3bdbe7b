"""Orphans of a dataset: files that none of its versions, on no branch, refers to.

Versions are Lance's to remove (`cleanup_old_versions`), and as long as one exists its files stay. All names come from
`tracked_files`, which reads each manifest once, in parallel, and streams Arrow.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laketier.kit import LocalFolder, confined, failpoint
from laketier.spi import Feature, FeatureNotSupported, LakeMaintenance, OrphanFile, OutsideTable, TableError
from laketier_lance.dataset import lance_errors, open_dataset, reason, unreadable
from laketier_lance.features import FORMAT
from laketier_lance.index_folders import FOLDER, empty_folders, remove_folders
from laketier_lance.location import BRANCHES, UNLINKED, local_folder, local_path, refuse_links
from laketier_lance.names import attempt_of
from laketier_lance.options import LanceOptions
from laketier_lance.tracked import tracked
from laketier_lance.versions import branches_of
from laketier_lance.writer import delete_files

if TYPE_CHECKING:
    from lance import LanceDataset

log = logging.getLogger(__name__)

INDEX = "index"
TEMPORARY = "temporary"

_KINDS: Mapping[str, str] = {
    "data": r"^data/[^/]+\.lance$",
    "deletion": r"^_deletions/[^/]+\.(arrow|bin)$",
    "transaction": r"^_transactions/[^/]+\.txn$",
    INDEX: r"^_indices/[0-9a-f-]{36}/.+$",
    # Where Lance's local writer collects a file, until it closes it and gives it its name.
    TEMPORARY: r"^(data|_deletions|_transactions|_versions)/\.tmp[^/]+$",
}
"""The files that are looked at, by the form of their paths. Left out: manifests, branches (``tree/``), references,
and the sidecars of blobs, as no API of Lance tells who refers to one."""

_MANIFEST = re.compile(r"_versions/\d+\.manifest")
_DETACHED = re.compile(r"(tree/.+/)?_versions/d\d+\.manifest")


class LanceMaintenance(LakeMaintenance):
    """Driver only."""

    def __init__(self, location: str, options: LanceOptions) -> None:
        self._location = location
        self._options = options

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        refuse_links(self._location)
        dataset = open_dataset(self._location, self._options.storage_options())
        try:
            return [
                *self._orphans(dataset, modified_before),
                *empty_folders(self._location, modified_before).values(),
            ]
        except lance_errors() as error:
            if "not found" in reason(error).lower():
                raise self._changed(reason(error)) from error
            raise unreadable(self._location, error) from error

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        files = [file.path for file in orphans if file.kind != FOLDER]
        gone = delete_files(self._location, self._options, files)
        # Whose files were all old enough is no build's that is under way.
        of_files = {file.path.split("/")[1] for file in orphans if file.kind == INDEX and file.path in gone}
        folders = {file.path.rpartition("/")[2] for file in orphans if file.kind == FOLDER}
        removed = remove_folders(self._location, sorted(of_files | folders))
        return [
            file
            for file in orphans
            if (file.path.rpartition("/")[2] in removed if file.kind == FOLDER else file.path in gone)
        ]

    def _orphans(self, dataset: LanceDataset, modified_before: int) -> list[OrphanFile]:
        # Files before versions: what is committed in between is found in its version.
        files = dataset.all_files().read_all()
        failpoint("orphans.between_files_and_versions")
        manifests = _manifests(files)
        self._refuse_detached(manifests)
        branches = branches_of(dataset)
        candidates = _candidates(
            files,
            modified_before,
            without=[INDEX] if branches else [],
            cut_to_seconds=local_path(self._location) is None,
        )
        candidates = {path: file for path, file in candidates.items() if self._is_own(path)}
        candidates |= _unlinked(self._location, modified_before)
        if not candidates:
            return []
        # A base need not be the root of a dataset; then its files are named without ``data/``.
        names = {name for path in candidates for name in (path, path.rpartition("/")[2])}
        referred = self._referred("", dataset, names, manifests)
        for branch in branches:
            at_branch = dataset.checkout_version((branch, None))
            referred |= self._referred(f"{BRANCHES}/{branch}/", at_branch, names, manifests)
        return [file for path, file in candidates.items() if not referred.intersection((path, path.rpartition("/")[2]))]

    def _is_own(self, path: str) -> bool:
        """Lance lists what links lead to as well. What they lead to is not this dataset's to delete."""
        try:
            confined(path, where=self._location)
            local = local_path(self._location)
            if local is not None:
                LocalFolder(local).refuse_links(path)
        except OutsideTable as error:
            log.warning("%s", error)
            return False
        return True

    def _referred(self, folder: str, dataset: LanceDataset, names: set[str], manifests: Sequence[str]) -> set[str]:
        """Which of ``names`` any version in ``folder`` refers to. Raises unless each of its manifests was read: what
        only an unread one refers to would be deleted."""
        own = {path.removeprefix(folder) for path in manifests if path.startswith(folder)}
        expected = {path for path in own if _MANIFEST.fullmatch(path)}
        wanted = pa.array(names | expected, pa.string())
        found = tracked(dataset, wanted, folder)
        if not expected or not expected <= found:
            raise self._changed(f"of {len(expected)} manifests in {folder or 'the dataset'!r} not all were read")
        return found

    def _refuse_detached(self, manifests: Sequence[str]) -> None:
        if any(_DETACHED.fullmatch(path) for path in manifests):
            raise FeatureNotSupported(
                Feature.ORPHAN_COLLECTION.value,
                format=FORMAT,
                reason=f"{self._location} has detached versions, and Lance does not list the files that they refer to",
                fix="Delete the files _versions/d*.manifest if nobody needs these versions.",
            )

    def _changed(self, why: str) -> TableError:
        return TableError(
            "the versions of the dataset could not all be read, so nothing is taken for an orphan",
            where=self._location,
            why=f"{why}; most likely old versions were cleaned up meanwhile",
            fix="Run it again when no cleanup is under way.",
        )


def _manifests(files: pa.Table) -> list[str]:
    paths = files.column("path")
    found: list[str] = paths.filter(pc.match_substring_regex(paths, r"(^|/)_versions/[^/]+\.manifest$")).to_pylist()
    return found


def _candidates(
    files: pa.Table, modified_before: int, *, without: Sequence[str], cut_to_seconds: bool
) -> dict[str, OrphanFile]:
    """``cut_to_seconds``: the store's times may be, as those of S3 and Azure are."""
    modified = pc.divide(files.column("last_modified").cast(pa.int64()), 1000)
    if cut_to_seconds:  # a file must not look older than the attempt that wrote it
        seconds = pc.multiply(pc.divide(modified, 1000), 1000)
        modified = pc.if_else(pc.equal(modified, seconds), pc.add(modified, 999), modified)
    old = files.append_column("modified", modified).filter(pc.less(modified, modified_before))
    found: dict[str, OrphanFile] = {}
    for kind in _KINDS.keys() - set(without):
        of_kind = old.filter(pc.match_substring_regex(old.column("path"), _KINDS[kind]))
        columns = (of_kind.column(name).to_pylist() for name in ("path", "size_bytes", "modified"))
        found |= {
            path: OrphanFile(path, size, at, kind, attempt_of(path)) for path, size, at in zip(*columns, strict=True)
        }
    return found


def _unlinked(location: str, modified_before: int) -> dict[str, OrphanFile]:
    """Manifests that a killed process had not linked to their names yet, or not only. Lance does not list them."""
    folder = local_folder(location)
    return {
        file.path: OrphanFile(file.path, file.bytes, file.modified_at, TEMPORARY)
        for file in ([] if folder is None else folder.files("_versions", recursive=False))
        if f".manifest{UNLINKED}" in file.path and file.modified_at < modified_before
    }
