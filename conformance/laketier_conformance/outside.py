"""What lies around a table on a local disk, so that a test can tell whether anybody touched it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laketier.spi import ConfigError, Feature, FeatureNotSupported, LakeStorage
from laketier_conformance import apart
from laketier_conformance.lake import Lake, Table, ids_of, token

_PARTS = 4
"""A database has a log of one kind or another, and memory that its users share."""
LONG_AGO = 1_000_000_000
"""Seconds since the epoch: older than any grace period."""


@dataclass(frozen=True)
class Surroundings:
    """A table, another one in the same warehouse with rows of its own, and a folder of somebody else's beside them."""

    table: Table
    other: Table
    folder: Path
    """Where the table's files are."""
    theirs: Path

    @classmethod
    def of(cls, lake: Lake, table: Table, tmp_path: Path) -> Surroundings | None:
        """None where the warehouse is no local folder: there are no links, and nothing can be looked at."""
        other = lake.create(name="db.other")
        other.append(0, ids_of(7))
        folder, home = local_folder(table.info.location), local_folder(other.info.location)
        if folder is None or home is None:
            return None
        theirs = tmp_path / "theirs"
        (theirs / "below").mkdir(parents=True)
        (theirs / "canary").write_text("theirs")
        (theirs / "below" / "canary").write_text("theirs")
        return cls(table, other, folder, theirs)

    @property
    def home(self) -> Path:
        """Where the other table's files are."""
        found = local_folder(self.other.info.location)
        assert found is not None
        return found

    def copy(self, path: str) -> Path:
        """The table's file ``path`` once more, under its own name, where it is somebody else's; and long ago."""
        copied = self.theirs / Path(path).name
        apart.copy(self.folder / path, copied)
        os.utime(copied, (LONG_AGO, LONG_AGO))
        return copied

    def around(self) -> Mapping[str, object]:
        """All that is not the table's, as `everything` tells it."""
        return {**everything(self.theirs), **everything(self.home)}

    def all(self) -> Mapping[str, object]:
        """The table's own files, too."""
        return {**self.around(), **everything(self.folder)}


def everything(folder: Path) -> Mapping[str, object]:
    """Each name below a folder, with what would change if anybody wrote, moved, linked or deleted there."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_nlink, status.st_size, status.st_mtime_ns)
    return found


def touched(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names that are new, gone or changed since `everything` told ``before``."""
    return sorted({Path(path).name for path in {*before, *now} if before.get(path) != now.get(path)})


def local_folder(location: str) -> Path | None:
    """Where it is, if it is a path or a `file:` URI of a folder on this machine's disk."""
    path = local_path(location)
    return path if path is not None and path.is_dir() else None


def is_on_disk(location: str) -> bool:
    """Whether it is a path or a `file:` URI of a folder on this machine's disk, or of a file, as a database may be."""
    path = local_path(location)
    return path is not None and path.exists()


def local_path(location: str) -> Path | None:
    """That of a path or a `file:` URI. None of a name that a server knows: a folder here may be called like it, and is
    somebody else's."""
    if is_behind_a_server(location):
        return None
    return Path(location if os.path.isabs(location) else unquote(urlsplit(location).path))


def files_below(folder: Path) -> list[Path]:
    """All files, whatever they are of."""
    return [path for path in folder.rglob("*") if path.is_file()]


def is_behind_a_server(location: str) -> bool:
    """Whether a location is a URL of a server, or a name that a server knows, below which nobody makes a folder: no
    absolute path and no `file:` URI."""
    return not os.path.isabs(location) and urlsplit(location).scheme != "file"


def opened_in_a_bucket(lake: Lake) -> LakeStorage:
    """A warehouse in a bucket that is not there. Raises `FeatureNotSupported` also for a format behind a server without
    such warehouses: it may take the URL for one of the many that are none of its server's."""
    try:
        return lake.open("s3://laketier-conformance/warehouse")
    except ConfigError as error:
        if lake.declares(Feature.OBJECT_STORES) or not is_behind_a_server(lake.location):
            raise
        raise FeatureNotSupported(Feature.OBJECT_STORES.value, reason="it is none of the server's URLs") from error


def sibling(folder: Path, table: str, name: str) -> Path | None:
    """Where a table ``name`` would lie, if each has a folder that is named by it, as ``t`` or ``t-of-db`` are. None
    where the name of the ``table`` at this folder is no word of its own in that of the folder, or not just one; and
    where its files lie one level below the folder of its name."""
    if folder.parent.name == table:
        return None
    found, times = re.subn(rf"(?<![^\W_]){re.escape(table)}(?![^\W_])", name, folder.name)
    return folder.with_name(found) if times == 1 else None


_NUMBERS = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}|[0-9]+")


def kind(root: Path, file: Path) -> str:
    """Its path below a table without numbers and identities: alike of files that are of one kind."""
    return _NUMBERS.sub("*", str(file.relative_to(root)))


def contents(root: Path | None) -> dict[Path, bytes]:
    """Of all files below."""
    return {} if root is None else apart.read_all(files_below(root))


def left_by(table: Table, epoch: int) -> dict[str, bytes]:
    """Publish an epoch. What its task made or wrote to, and what these files held before the commit, whatever they are
    called later. Nothing of a task that has no files."""
    root = Path(table.lake.location)
    before = apart.read_all({str(root / name) for name in table.lake.files()})
    staged = table.staged(ids_of(epoch))
    after = apart.read_all({str(root / name) for name in table.lake.files()})
    table.commit([staged], token(epoch))
    return {path: holds for path, holds in after.items() if before.get(path) != holds}


def in_parts(paths: Collection[str], among: Collection[str]) -> list[str]:
    """Files, of which a few are one whose names begin with that of another one beside them: as a database has it."""
    found: dict[str, list[str]] = {}
    for path in paths:
        first = [each for each in among if path.startswith((f"{each}-", f"{each}.")) and "/" not in path[len(each) :]]
        found.setdefault(min(first, key=len, default=path), []).append(path)
    return [path for first, parts in found.items() for path in ([first] if len(parts) <= _PARTS else parts)]


def restore(root: Path | None, whole: dict[Path, bytes]) -> None:
    """Put the files back as they were."""
    there = contents(root)
    for file in there:
        if file not in whole:
            file.unlink()
    for file in whole.keys() - there.keys():
        file.parent.mkdir(parents=True, exist_ok=True)
    apart.write_all({file: content for file, content in whole.items() if there.get(file) != content})
