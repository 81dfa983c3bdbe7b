"""A last look at files before they are published, or replaced, for formats whose libraries do not take one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow.fs as pafs

from laketier.spi.errors import CommitError
from laketier.spi.writer import WriteResult


def check_staged(filesystem: pafs.FileSystem, sizes: Mapping[str, int], *, where: str) -> None:
    """Raise `CommitError` unless each path of ``filesystem`` is a file of the size that its writer wrote. One request
    for each, all at once.

    A clean-up by other tools that is too eager deletes files that are staged; a table that lists them can't be read.
    """
    paths = list(sizes)
    for path, found in zip(paths, filesystem.get_file_info(paths) if paths else (), strict=True):
        if found.type is not pafs.FileType.File:
            raise CommitError(
                "a staged file is gone; nothing was published",
                where=f"{where}: {path}",
                why="something deleted it (a VACUUM or orphan removal with too short a retention), or the driver does "
                "not see the executors' disks",
                fix="Run the round again: it will be staged anew. Keep the retention longer than the slowest round.",
            )
        if found.size != sizes[path]:
            raise CommitError(
                f"a staged file has {found.size} bytes, and its writer wrote {sizes[path]}; nothing was published",
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
