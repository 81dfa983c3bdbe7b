"""Where a table's files lie, and what they are called. Pure functions; nothing here touches the disk.

::

    <warehouse>/<database>/<table>/
        region=eu/part-00003-b00001-<attempt>-0001.parquet       final: what plain readers see
        region=eu/2026/11/24/part-….parquet                      final, of a table with folders by time
        __in_progress/part-….parquet.inprogress                  staged, or published and about to be moved
        __superseded/part-….parquet.superseded                   replaced; kept for time travel
        _laketier_manifests/table.json                           which table this is; its creation
        _laketier_manifests/<uuid>/00000000000000000042.json     one manifest per commit

Readers of Hive-style folders skip names that begin with ``_``. DuckDB's ``**/*.parquet`` does not, so nothing below
those folders ends in ``.parquet``. Manifests end in ``.json``, so globs of JSON files have ``part-`` in them. What
a commit adds to the name of a staged file can be taken off again (see `naming`), so a file's three places follow from
one path, and the manifest stores only that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from laketier.kit import confined
from laketier.kit.file_names import FileNames, spelled
from laketier.kit.manifests import ManifestLayout
from laketier.kit.partition import LONGEST_FOLDER, OddPartitionValues, folder_for_odd
from laketier.spi import OutsideTable, UnstorableRows
from laketier_localfile.features import IDENTIFIER
from laketier_localfile.names import ADOPTABLE, SUFFIX
from laketier_localfile.naming import attempt_in, bucket_in, core_of, is_name
from laketier_localfile.parquet import details
from laketier_localfile.time_pattern import HIVE_NULL, is_time_folder

IN_PROGRESS = "__in_progress"
SUPERSEDED = "__superseded"
MANIFESTS = "_laketier_manifests"
LOST = ".lost"
"""How the names of manifests end that were moved aside when a table was rebuilt."""

NULL_PARTITION = HIVE_NULL

STAGED_SUFFIX = ".inprogress"
_SUPERSEDED_SUFFIX = ".superseded"
_ACCEPT = "set lake.localfile.odd-partition-values = accept, which names the folder by a digest"
_BASE_NAME = re.compile(r"part-[0-9a-z-]+" + SUFFIX + r"\Z")
_ADOPTED = re.compile(r"adopted-[0-9a-f]{32}\Z")
_PARTITION_FOLDER = re.compile(r"(?:[^_.=][^=]*)?=.+\Z", re.DOTALL)

# What Hive and Spark escape, and NUL, which no path can hold.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def base_name(
    split_index: int,
    bucket: int | None,
    attempt: str,
    number: int,
    suffix: str = ".parquet",
    names: FileNames = FileNames.ATTEMPT,
) -> str:
    """The name under which a data file is staged. Unique by its attempt, so no two writers ever choose the same one."""
    middle = "" if bucket is None else f"b{bucket:05}-"
    return f"part-{split_index:05}-{middle}{spelled(attempt, names)}-{number:04}{suffix}"


def attempt_of(path: str) -> str | None:
    """The attempt that wrote a data file, wherever it is now. None for other files."""
    return attempt_in(path.rpartition("/")[2].removesuffix(STAGED_SUFFIX))


def attempt_of_staged(path: str) -> str | None:
    """The attempt that staged the file ``path``. None for what is elsewhere, and so may be live."""
    folder, _, name = path.rpartition("/")
    return attempt_of(name) if folder == IN_PROGRESS and name.endswith(STAGED_SUFFIX) else None


def staged_path(path: str) -> str:
    """Where the data file ``path`` (final, relative) is staged. Nothing is there of a file that was adopted."""
    return f"{IN_PROGRESS}/{core_of(_own_name(path))}{STAGED_SUFFIX}"


def superseded_path(path: str) -> str:
    """Where the data file ``path`` goes when an overwrite or an upsert replaces it."""
    return f"{SUPERSEDED}/{_own_name(path)}{_SUPERSEDED_SUFFIX}"


def is_superseded(path: str) -> bool:
    """Whether a file has a name that `superseded_path` gives."""
    folder, _, name = path.rpartition("/")
    base = name.removesuffix(_SUPERSEDED_SUFFIX)
    return folder == SUPERSEDED and base != name and (attempt_of(base) is not None or bool(_ADOPTED.match(base)))


def _own_name(path: str) -> str:
    """A name that no other data file has. Those of files that were adopted may be the same in several folders."""
    name = PurePosixPath(path).name
    if attempt_of(name) is not None:
        return name
    return f"adopted-{hashlib.sha256(path.encode()).hexdigest()[:32]}"


def is_adoptable(path: str) -> bool:
    """Whether a file may be one that lay there before the table: what plain readers take, so nothing of the table's
    own, and nothing hidden."""
    return path.endswith(ADOPTABLE) and not any(part.startswith(("_", ".")) for part in path.split("/"))


def bucket_of(path: str) -> int | None:
    """The bucket in the name of a data file that a writer of ours made."""
    return bucket_in(PurePosixPath(path).name)


def final_path(staged: str, folders: Sequence[str]) -> str:
    """Where a staged file becomes visible, below the ``folders`` of its partition. Raises `OutsideTable` for a path
    that no writer of ours made, so that a forged or foreign write result can't name a file outside the table."""
    folder, _, name = confined(staged, where="a write result").rpartition("/")
    base = name.removesuffix(STAGED_SUFFIX)
    if folder != IN_PROGRESS or name == base or core_of(base) != base or not (is_name(base) or _BASE_NAME.match(base)):
        raise OutsideTable(
            f"{staged!r} is not the path of a staged file of this format, and was not touched", where="a write result"
        )
    return LAYOUT.data_path("/".join((*folders, base)), where="a write result")


def _is_data_file(path: str) -> bool:
    """Below folders of partitions alone, under a name of ours: what moves and deletes data files takes no other."""
    *folders, name = path.split("/")
    return bool(is_name(name) or _BASE_NAME.match(name)) and all(
        _PARTITION_FOLDER.match(folder) or is_time_folder(folder) for folder in folders
    )


def partition_folders(
    partition: Sequence[tuple[str, str | None]], odd: OddPartitionValues = OddPartitionValues.REFUSE
) -> list[str]:
    """``k=v`` for each field, escaped as Hive and Spark do. For values that a folder's name can't hold so that every
    reader gets them back: a digest, as files hold the value too, or `UnstorableRows`, as ``odd`` says."""
    folders = []
    for name, value in partition:
        if odd is OddPartitionValues.ACCEPT and value is not None and _is_odd(name, value):
            folders.append(f"{escape(name)}={folder_for_odd(value)}")
            continue
        if value == "" or value == NULL_PARTITION:
            raise UnstorableRows(
                f"partition column {name!r} holds {value!r}",
                why="Hive-style folders can't tell it from null",
                fix=f"Map it to null or to another text in the query, or {_ACCEPT}.",
            )
        folder = f"{escape(name)}={NULL_PARTITION if value is None else escape(value)}"
        if len(folder.encode()) > LONGEST_FOLDER:
            raise UnstorableRows(
                f"a value of partition column {name!r} makes a folder name of {len(folder.encode())} bytes",
                why=f"file systems hold {LONGEST_FOLDER}; the value starts with {str(value)[:40]!r}",
                fix=f"Partition by a shorter column, for example a prefix or a hash of this one, or {_ACCEPT}.",
            )
        folders.append(folder)
    return folders


def _is_odd(name: str, value: str) -> bool:
    return value in ("", NULL_PARTITION) or len(f"{escape(name)}={escape(value)}".encode()) > LONGEST_FOLDER


def escape(text: str) -> str:
    """Hive's escaping: ``%`` and two upper-case hex digits for each character that is special in a path."""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


LAYOUT = ManifestLayout(
    format=IDENTIFIER,
    folder=MANIFESTS,
    attempt_of=attempt_of_staged,
    staging=IN_PROGRESS,
    others=(SUPERSEDED,),
    staged_as=staged_path,
    allowed=_is_data_file,
    details=details,
    adoptable=is_adoptable,
    superseded=SUPERSEDED,
    superseded_as=superseded_path,
    was_superseded=is_superseded,
)
