"""The last check of files before they are published, replaced or deleted, for formats with libraries that check
nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress

from laketier.kit.confine import confined
from laketier.kit.table_store import StagingArea
from laketier.spi.errors import CommitError, OutsideTable, StagedFileLost, StorageError
from laketier.spi.maintenance import OrphanFile
from laketier.spi.writer import WriteResult

log = logging.getLogger(__name__)

_DELETIONS_AT_ONCE = 16

AttemptOf = Callable[[str], str | None]
"""Returns the attempt that staged a file, by its path. None for a file that no writer of the format stages."""


def check_staged(folder: StagingArea, results: Sequence[WriteResult], *, attempt_of: AttemptOf, where: str) -> None:
    """Check each file of ``results`` before it is published. Raises `StagedFileLost` unless it is in ``folder`` with
    the size that its writer wrote. Raises `OutsideTable` for a path that leads out of the folder, or a file of
    another attempt. One request for each file, all at once. An eager clean-up by other tools may delete staged
    files, and a table that lists a deleted file can't be read."""
    refuse_foreign(results, attempt_of, where=where)
    sizes = {file.path: file.bytes for result in results for file in result.files}
    for path, found in folder.sizes(list(sizes)).items():
        refuse_lost(path, found, sizes[path], where=where)


def refuse_foreign(results: Sequence[WriteResult], attempt_of: AttemptOf, *, where: str) -> None:
    """Raise `OutsideTable` unless each file of ``results`` belongs to the attempt of its result, and
    `StagedFileLost` for a file that is named twice. Results come from outside. They may name a live file, with rows
    that would then be doubled, or the table's own documents."""
    seen: set[str] = set()
    for result in results:
        for file in result.files:
            why = _foreign(file.path, result.attempt, attempt_of, where=where)
            if why is not None:
                raise OutsideTable(
                    f"{file.path!a} is not a file that attempt {result.attempt!a} staged; nothing was published",
                    where=where,
                    why=why,
                    fix="No writer of laketier makes such a result: find out who did, and run the round again.",
                )
            if file.path in seen:
                raise StagedFileLost(
                    "a staged file was handed over twice; nothing was published",
                    where=f"{where}: {file.path}",
                    fix="Run the round again: it stages its files again.",
                )
            seen.add(file.path)


def refuse_live(paths: Iterable[str], live: Container[str], *, where: str) -> None:
    """Raise `OutsideTable` for a staged file that is one of the ``live`` files of the table. For formats that list a
    file any number of times, with its rows as often: an old result that is handed over again names such files."""
    _refuse_again(paths, live, "is a file of the table already", where)


def refuse_published(paths: Iterable[str], named: Container[str], *, where: str) -> None:
    """Raise `OutsideTable` for a staged file that a commit has ``named`` before. It may be no file of the table any
    more: a compaction put its rows elsewhere, or somebody deleted them, and they would be there again."""
    _refuse_again(paths, named, "was published before", where)


def _refuse_again(paths: Iterable[str], known: Container[str], what: str, where: str) -> None:
    twice = next((path for path in paths if path in known), None)
    if twice is not None:
        raise OutsideTable(
            f"{twice!r} {what}; nothing was published",
            where=where,
            why="an old result was handed over again",
            fix="Its rows came to the table with an earlier commit. Stage them anew if they shall be there once more.",
        )


def discard_staged(
    results: Sequence[WriteResult],
    *,
    attempt_of: AttemptOf,
    where: str,
    published: Callable[[Sequence[str]], Collection[str]],
    delete: Callable[[Sequence[str]], object],
) -> None:
    """Delete the files of ``results``, for `LakeCommitter.discard`. Files of other attempts and files in the table
    are kept. ``published`` loads the table, and returns those of the given paths that some snapshot needs. The
    caller is certain that nothing landed, but a result that is handed over twice names live files, and deleting them
    would lose rows. If the table can't be read, all files are kept. ``delete`` logs the files that it can't delete.
    ``where`` names the table."""
    own = own_paths(results, attempt_of, where=where)
    if not own:
        return
    try:
        kept = published(own)
    except Exception:  # each library has errors of its own, and none of them may hide why the round ended
        log.warning("%s can't be read, so nothing was deleted; orphan collection will find it", where, exc_info=True)
        return
    for path in own:
        if path in kept:
            log.error("%s: %s was to be discarded, and is in the table: kept", where, path)
    delete([path for path in own if path not in kept])


def own_paths(results: Sequence[WriteResult], attempt_of: AttemptOf, *, where: str) -> list[str]:
    """The paths of ``results`` that may be deleted with them. Paths that `refuse_foreign` would refuse are logged
    and left out: they may be live, or the table's log."""
    own = []
    for result in results:
        for file in result.files:
            try:
                why = _foreign(file.path, result.attempt, attempt_of, where=where)
            except OutsideTable as error:
                why = str(error)
            if why is None:
                own.append(file.path)
            else:
                log.warning(
                    "%s: %a is not a file that attempt %a staged, and was not deleted: %s",
                    where,
                    file.path,
                    result.attempt,
                    why,
                )
    return own


def _foreign(path: str, attempt: str, attempt_of: AttemptOf, *, where: str) -> str | None:
    """Why ``path`` is not of ``attempt``, as a clause; None when it is. Raises `OutsideTable`."""
    found = attempt_of(confined(path, where=where))
    if found is None:
        return "no writer of this format stages a file under such a name"
    return None if found == attempt else f"attempt {found} did"


def remove_files(folder: StagingArea, orphans: Sequence[OrphanFile]) -> list[OrphanFile]:
    """Delete orphans with `remove`, for `LakeMaintenance.remove_orphans`. Returns the files that are gone."""
    gone = remove(folder, [file.path for file in orphans])
    return [file for file in orphans if file.path in gone]


def remove(folder: StagingArea, paths: Sequence[str]) -> set[str]:
    """Delete files, and return those that are gone, missing files too. A file that can't be deleted, or is outside
    of ``folder``, is logged, and the other files are deleted."""

    def is_gone(path: str) -> bool:
        try:
            folder.delete(path)
        except (OSError, StorageError, OutsideTable):
            log.warning("%s: %a was not deleted; orphan collection will find it", folder.root, path, exc_info=True)
            return False
        return True

    with ThreadPoolExecutor(_DELETIONS_AT_ONCE) as pool:
        return set(compress(paths, pool.map(is_gone, paths)))


def refuse_lost(path: str, found: int | None, wrote: int, *, where: str) -> None:
    """Raise `StagedFileLost` unless a staged file has the bytes that its writer ``wrote``. ``found`` is None for a
    missing file."""
    if found is None:
        raise StagedFileLost(
            "a staged file is gone; nothing was published",
            where=f"{where}: {path}",
            why="something deleted it (a VACUUM or orphan removal with too short a retention), or the driver does "
            "not see the executors' disks",
            fix="Run the round again: it stages its files again. Keep the retention longer than the slowest round, and "
            "the warehouse on storage that driver and executors share.",
        )
    if found != wrote:
        raise StagedFileLost(
            f"a staged file has {found} bytes, and its writer wrote {wrote}; nothing was published",
            where=f"{where}: {path}",
            fix="Run the round again: it stages its files again.",
        )


def replaced_files(results: Sequence[WriteResult], live: Collection[str], *, where: str) -> tuple[str, ...]:
    """List the files that ``results`` replace, in their order. Raises `CommitError` unless each is one of ``live``
    and is replaced once: otherwise rows would be doubled or lost."""
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
                fix="Plan the round again.",
            )
        seen.add(name)
    return tuple(named)
