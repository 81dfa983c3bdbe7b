"""The data files that lie in a folder, as plain readers find them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from laketier.kit.confine import escapes
from laketier.kit.manifests import Manifest
from laketier.spi import CorruptTable, IncompatibleData, IncompatibleTable, OutsideTable, TableNotFound
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.file_formats.known import KNOWN, of_name
from laketier_localfile.layout import IN_PROGRESS, LAYOUT, LOST, MANIFESTS, STAGED_SUFFIX, attempt_of, is_adoptable
from laketier_localfile.names import FILE_FORMAT

_NAMED = 3

Identity = tuple[int, int, int]
"""Size, time of change in ns, inode."""
_FOREIGN = (
    ("_delta_log", "Delta Lake"),
    (".hoodie", "Hudi"),
    ("_versions", "Lance"),
    ("_laketier_manifests", "laketier"),
)


@dataclass(frozen=True)
class LyingFiles:
    """``files``: path → what it is now. ``left_out``: other files, and why they are none of a table's."""

    files: dict[str, Identity]
    left_out: dict[str, str]

    @classmethod
    def below(cls, location: Path) -> LyingFiles:
        """List them. Raises `TableNotFound`, `OutsideTable` for a link, which plain readers would follow, and
        `IncompatibleTable` for folders of tables and of other file systems."""
        found = cls({}, {})
        try:
            device = os.stat(location).st_dev
            _walk(found, location, "", device)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise TableNotFound("there is no such folder", where=str(location)) from error
        return found

    def only_of(self, chosen: FileFormat | None, location: Path, *, may_be_empty: bool = False) -> FileFormat:
        """The one format of the files; those of others are left out where it is ``chosen``. Raises `IncompatibleData`
        for several, and where there is none."""
        by_format: dict[str, list[str]] = {}
        for path in sorted(self.files):
            found = of_name(path)
            by_format.setdefault(found.name if found else "", []).append(path)
        if chosen is None and len(by_format) > 1:
            there = ", ".join(f"{len(paths):,} of {name} ({paths[0]!r})" for name, paths in sorted(by_format.items()))
            raise IncompatibleData(
                "the folder holds files of several formats",
                where=str(location),
                why=f"there are {there}, and a table has one file format",
                fix=f"Say which: lake.localfile.file-format ({FILE_FORMAT}); or move the others away.",
            )
        wanted = chosen.name if chosen is not None else next(iter(by_format), "")
        for name, paths in by_format.items():
            if name != wanted:
                for path in paths:
                    del self.files[path]
                    self.left_out[path] = f"it is named as a file of {name}"
        if not self.files and not may_be_empty:
            raise IncompatibleData(
                f"the folder holds no file of {wanted}" if wanted else "the folder holds no data file",
                where=str(location),
                why=f"it holds {len(self.left_out):,} other files" if self.left_out else "it is empty",
                fix="Name a folder that holds files named *.parquet, *.json, *.csv, *.arrow or *.vortex.",
            )
        return KNOWN[wanted]

    def refuse_changed(self, location: Path, found: LyingFiles | None = None) -> None:
        """Raise `IncompatibleTable` unless the same files lie there as before, and none has changed. ``found``: what
        lies there now."""
        apart = self.left_out.keys() - self.files.keys()
        there = (found or LyingFiles.below(location)).files
        now = {path: each for path, each in there.items() if path not in apart}
        changed = sorted(path for path in now.keys() | self.files.keys() if now.get(path) != self.files.get(path))
        if changed:
            raise IncompatibleTable(
                f"{len(changed):,} files changed while the folder was looked at: {', '.join(changed[:_NAMED])}",
                where=str(location),
                why="something still writes there",
                fix="Stop what writes into the folder, and run it again.",
            )


def refuse_within_table(location: Path) -> None:
    """Raise `IncompatibleTable` for a folder within that of a table: its files would be of two tables, of which one
    moves away what the other needs."""
    for folder in location.parents:
        for name, kind in _FOREIGN:
            if (folder / name).is_dir():
                raise IncompatibleTable(
                    "the folder lies within a table",
                    where=str(location),
                    why=f"{folder} is a table of {kind}",
                    fix="Move the folder out of that table, and adopt it there.",
                )


def _walk(lying: LyingFiles, location: Path, prefix: str, device: int) -> None:
    with os.scandir(location / prefix) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    _refuse_tables(location / prefix, [entry.name for entry in found], top=not prefix)
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_symlink():
            raise OutsideTable(
                f"{path!r} is a symbolic link",
                where=str(location),
                why="plain readers follow it, and a table has only what lies in its own folder",
                fix="Put the file itself there, or name the link _….",
            )
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _walk(lying, location, f"{path}/", device)
        elif not stat.S_ISREG(status.st_mode) or not is_adoptable(path):
            lying.left_out[path] = "its name is that of no data file"
        elif (why := escapes(path)) is not None:
            raise OutsideTable(f"{path!a} can't be a file of a table", where=str(location), why=why, fix="Rename it.")
        elif status.st_dev != device:
            raise IncompatibleTable(
                f"{path!r} is on another file system than the folder",
                where=str(location),
                why="files that are replaced are moved, which works only within one",
                fix="Put all files on one file system.",
            )
        else:
            lying.files[path] = identity_of(status)


def left_of_table(location: Path) -> str | None:
    """A file that a table of laketier left there, None where there is none. Cheap for folders of others."""
    if not any((location / name).is_dir() for name in LAYOUT.own_folders):
        return None
    for path in (location / MANIFESTS).glob(f"*{LOST}"):
        return str(path.relative_to(location))
    for path in (location / MANIFESTS).glob("*/head.json"):
        if _had_rows(path.parent):
            return str(path.relative_to(location))
    deleted = not (location / MANIFESTS).exists()  # it is made before the others
    for folder, folders, names in os.walk(location):
        for name in names:
            own = attempt_of(name) is not None and not name.endswith(STAGED_SUFFIX)
            if own or (deleted and is_adoptable(name)):
                return os.path.relpath(os.path.join(folder, name), location)
        folders[:] = [name for name in folders if name not in (MANIFESTS, IN_PROGRESS)]
    return None


def _had_rows(manifests: Path) -> bool:
    """Whether a chain of manifests is more than the creation of an empty table, which can be made again."""
    if (manifests / f"{1:020}.json").exists():
        return True
    try:
        return bool(Manifest.read(manifests / f"{0:020}.json", LAYOUT).added)
    except FileNotFoundError:
        return False
    except CorruptTable:
        return True


def _refuse_tables(folder: Path, names: Sequence[str], *, top: bool) -> None:
    """A folder of any format's own means that another table's rules say which of the files count."""
    marks = [(name, kind) for name, kind in _FOREIGN if name in names and not (top and kind == "laketier")]
    if "metadata" in names:
        marks += [("metadata", "Iceberg") for _ in folder.glob("metadata/*.metadata.json")]
    if marks:
        name, kind = marks[0]
        raise IncompatibleTable(
            f"the folder is a table of {kind}",
            where=str(folder),
            why=f"it holds {name}, which says what of the other files counts",
            fix="Read it as such a table, and write its rows into a new one.",
        )


def identity_of(status: os.stat_result) -> Identity:
    """What tells whether a file is still the same."""
    return status.st_size, status.st_mtime_ns, status.st_ino
