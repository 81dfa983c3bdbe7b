"""Looks at names on a disk: there, not there, or nobody could look.

The third is an error here. `os.path.exists` and its like take each error for an absence, those of `pathlib.Path` some
of them, and from Python 3.14 on all of them; `Path.glob` and `os.walk` pass over what they can't read. Whoever decides
by such an answer creates a table beside one that is there, or takes its files for lost.
`tests/unit/kit/test_looks_alone.py` refuses them all elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def is_absent(path: Path | str) -> bool:
    """Whether nothing has this name, not even a link. Where it can't be looked at, nobody knows, and the answer is
    False; `os.path.lexists` would take each error for an absence."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def is_there(path: Path | str) -> bool:
    """Whether a file or folder has this name, also through links. Raises `OSError` where it can't be looked at."""
    return _mode(path) is not None


def is_folder(path: Path | str) -> bool:
    """Whether a folder has this name, also through links. Raises `OSError` where it can't be looked at."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(path: Path | str) -> bool:
    """Whether a regular file has this name, also through links. Raises `OSError` where it can't be looked at."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_link(path: Path | str) -> bool:
    """Whether a symbolic link has this name. Raises `OSError` where it can't be looked at."""
    mode = _mode(path, follow=False)
    return mode is not None and stat.S_ISLNK(mode)


def names_in(folder: Path | str) -> list[str]:
    """The names in a folder, in no order; none where there is no folder. Raises `OSError` where it can't be read."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_and_folders(entries: Iterable[os.DirEntry[str]]) -> tuple[list[str], list[str]]:
    """The names of files and those of folders. A link is what it leads to; one that can't be looked at is both."""
    files: list[str] = []
    folders: list[str] = []
    for entry in entries:
        try:
            (folders if entry.is_dir() else files).append(entry.name)
        except OSError:
            folders.append(entry.name)
            files.append(entry.name)
    return files, folders


def below(folder: Path | str) -> Iterator[tuple[str, list[str], list[str]]]:
    """`os.walk`, which raises `OSError` for a folder that can't be read. What is gone meanwhile is passed over."""
    return os.walk(folder, onerror=_raised)


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _mode(path: Path | str, *, follow: bool = True) -> int | None:
    try:
        return os.stat(path, follow_symlinks=follow).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
