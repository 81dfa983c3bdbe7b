"""A last look at staged files before they are published, for formats whose libraries do not take one."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.fs as pafs

from laketier.spi.errors import CommitError


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
