"""A last look at files before they are published, or replaced, or deleted, for formats whose libraries take none."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from laketier.spi.errors import CommitError, OutsideTable, StagedFileLost
from laketier.spi.maintenance import OrphanFile
from laketier.spi.table_folder import TableFolder
from laketier.spi.writer import WriteResult

log = logging.getLogger(__name__)

_DELETIONS_AT_ONCE = 16


def check_staged(folder: TableFolder, results: Sequence[WriteResult], *, where: str) -> None:
    """Raise `StagedFileLost` unless each file of ``results`` is in ``folder`` with the size that its writer wrote, and
    `OutsideTable` for one that leads out of it. One request for each, all at once.

    A clean-up by other tools that is too eager deletes files that are staged; a table that lists them can't be read.
    """
    sizes = {file.path: file.bytes for result in results for file in result.files}
    for path, found in folder.sizes(list(sizes)).items():
        refuse_lost(path, found, sizes[path], where=where)


def discard_staged(folder: TableFolder, results: Sequence[WriteResult]) -> None:
    """For `LakeCommitter.discard`: `remove` the files of ``results``."""
    remove(folder, [file.path for result in results for file in result.files])


def remove_files(folder: TableFolder, orphans: Sequence[OrphanFile]) -> list[OrphanFile]:
    """For `LakeMaintenance.remove_orphans`: `remove` them, and return those that are gone."""
    gone = remove(folder, [file.path for file in orphans])
    return [file for file in orphans if file.path in gone]


def remove(folder: TableFolder, paths: Sequence[str]) -> set[str]:
    """Delete files, and return those that are gone. What was gone already is fine. A file that can't be deleted, or
    that is outside of ``folder``, is logged, and the others are deleted all the same."""

    def is_gone(path: str) -> bool:
        try:
            folder.delete(path)
        except (OSError, OutsideTable):
            log.warning("%s: %a was not deleted; orphan collection will find it", folder.root, path, exc_info=True)
            return False
        return True

    if not paths:
        return set()
    with ThreadPoolExecutor(_DELETIONS_AT_ONCE) as pool:
        return {path for path, gone in zip(paths, pool.map(is_gone, paths), strict=True) if gone}


def refuse_lost(path: str, found: int | None, wrote: int, *, where: str) -> None:
    """Raise `StagedFileLost` unless a staged file has as many bytes as its writer ``wrote``. ``found``: None when it is
    not there."""
    if found is None:
        raise StagedFileLost(
            "a staged file is gone; nothing was published",
            where=f"{where}: {path}",
            why="something deleted it (a VACUUM or orphan removal with too short a retention), or the driver does "
            "not see the executors' disks",
            fix="Run the round again: it will be staged anew. Keep the retention longer than the slowest round, and "
            "the warehouse on storage that driver and executors share.",
        )
    if found != wrote:
        raise StagedFileLost(
            f"a staged file has {found} bytes, and its writer wrote {wrote}; nothing was published",
            where=f"{where}: {path}",
            fix="Run the round again: it will be staged anew.",
        )


def replaced_files(results: Sequence[WriteResult], live: Collection[str], *, where: str) -> tuple[str, ...]:
    """The files that ``results`` replace, in their order. Raises `CommitError` unless each is one of ``live`` and is
    replaced once: rows would be there twice, or be lost."""
    named = [name for result in results for name in result.replaced]
    seen: set[str] = set()
    for name in named:
        if name not in live or name in seen:
            raise CommitError(
                "a file is replaced twice; nothing was published"
                if name in seen
                else "a file that was to be replaced is no live file of the table; nothing was published",
                where=f"{where}: {name}",
                why="two tasks rewrote it" if name in seen else "the round read another snapshot than this one",
                fix="Run the round again: it will be planned anew.",
            )
        seen.add(name)
    return tuple(named)
