"""Deleting what a table's metadata names: only what lies below the table, whatever the metadata says.

pyiceberg deletes any location that old metadata, or a table that is purged, names.
"""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from laketier.kit.staged import remove
from laketier_iceberg.files import Files
from laketier_iceberg.locations import Below, is_local, split
from laketier_iceberg.lost import METADATA, is_alone, mark_of_drop, name_left
from laketier_iceberg.neighbours import METADATA_PATH, METADATA_SUFFIX, another_line, foreign_metadata, neighbour
from laketier_iceberg.references import locations, may_delete
from laketier_iceberg.table_properties import DELETE_OLD_METADATA

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from laketier.kit import TableFolder

log = logging.getLogger(__name__)


def delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
    """After a commit, the metadata files that ``base`` listed and ``metadata`` does not, if the table's properties say
    so."""
    if metadata.properties.get(DELETE_OLD_METADATA, "false").lower() != "true":
        return
    kept = {entry.metadata_file for entry in metadata.metadata_log}
    old = {entry.metadata_file for entry in base.metadata_log} - kept
    documents = {location for location in old if METADATA_SUFFIX in posixpath.basename(location)}
    folders = [base.location, *filter(None, [base.properties.get(METADATA_PATH)])]
    left = (old - documents) | set(delete_below(io, folders, documents))
    for location in sorted(left):
        log.warning("%a was left alone: the metadata log names it, and it is no metadata file of the table", location)


def drop(catalog: Catalog, table: Table, *, own_folder: str | None) -> None:
    """Take the table out of the catalog, and delete its files: all that were in ``own_folder`` before, if it had that
    to itself, else those that its metadata names below its location. All stay where another table has, or may have,
    files there, and where ``gc.enabled`` is false. As soon as the name is free, another process may make a table in the
    same folder, and what comes there from then on is that one's. Raises what ``catalog.drop_table`` does."""
    from pyiceberg.catalog import MetastoreCatalog
    from pyiceberg.exceptions import NoSuchTableError

    name, location = table.name(), table.location().rstrip("/")
    if not isinstance(catalog, MetastoreCatalog):
        catalog.purge_table(name)  # by the server, which knows its tables
        return
    folder = Files(table.io.properties).folder(location)
    found, stays = _found(folder)
    stays = stays or _why_files_stay(catalog, table, folder, found)
    named = [] if stays is not None or own_folder is not None else list(locations(table))
    is_own = own_folder is not None and Path(location) == Path(own_folder)
    place = Path(location) if is_own else _place_of_metadata(table, own_folder)
    mark = None if place is None else mark_of_drop(place, str(table.metadata.table_uuid), table.metadata_location)
    try:
        catalog.drop_table(name)
    except NoSuchTableError:
        if is_own and mark is not None and is_alone(Path(location), mark):  # somebody else dropped it, and is done
            remove(folder, [mark])
            _remove_empty_folders(location)
        raise
    if place is not None and mark is not None and (stays is not None or not is_own):
        name_left(place, mark, table.metadata_location)
    if stays is not None:
        log.warning("%s: the files below %s stay, as %s", ".".join(name), location, stays)
    elif is_own:
        # Whoever finds a table's metadata without the mark takes it for lost.
        remove(folder, [path for path in found if path != mark])
        remove(folder, [] if mark is None else [mark])
        _remove_empty_folders(location)
    else:
        for left in delete_below(table.io, [location], named):
            log.warning("%s: %a stays, as it does not lie below the table", ".".join(name), left)


def _place_of_metadata(table: Table, own_folder: str | None) -> Path | None:
    """The place in the embedded catalog's warehouse where a table has its metadata that got another name, or whose
    location is spelled in another way: its files stay there. None for one elsewhere, which is not ours to mark."""
    parts = split(posixpath.dirname(table.metadata_location))
    if own_folder is None or not is_local(parts):
        return None
    folder = Path(parts.path)
    return folder.parent if folder.name == METADATA and folder.is_relative_to(Path(own_folder).parents[1]) else None


def _found(folder: TableFolder) -> tuple[list[str], str | None]:
    """The files, or why they can't be told."""
    try:
        return [file.path for file in folder.files()], None
    except OSError as error:
        return [], _unknown(error)


def _unknown(error: OSError) -> str:
    return f"it is unknown whether all are the table's: {error}"


def _remove_empty_folders(location: str) -> None:
    """One that got a file meanwhile stays."""
    for parent, _, _ in os.walk(location, topdown=False):
        with suppress(OSError):
            os.rmdir(parent)


def _why_files_stay(catalog: Catalog, table: Table, folder: TableFolder, found: Sequence[str]) -> str | None:
    if not may_delete(table.metadata):
        return "its property gc.enabled is false: others may need them"
    location = table.location().rstrip("/")
    try:
        foreign = foreign_metadata(folder, found, str(table.metadata.table_uuid))
        if foreign is not None:
            return f"{foreign} there is the metadata of another table"
        line = another_line(folder, found, table)
    except OSError as error:
        return _unknown(error)
    if line is not None:
        return f"{line} there goes on from metadata that this catalog does not know: another one may have the table"
    other = neighbour(catalog, table, Below(location), unread=True)
    return None if other is None else f"table {other} has its own there, or may have"


def delete_below(io: FileIO, folders: Iterable[str], locations: Iterable[str]) -> list[str]:
    """Delete the files of ``locations`` that lie below one of ``folders``, links not followed. Returns the others."""
    left = list(locations)
    for folder in folders:
        root = folder.rstrip("/")
        below = Below(root)
        inside = {location: path for location in left if (path := _path_below(below, location)) is not None}
        remove(Files(io.properties).folder(root), list(inside.values()))
        left = [location for location in left if location not in inside]
    return left


def _path_below(below: Below, location: str) -> str | None:
    parent, _, name = location.rpartition("/")
    folder = below.path(parent)
    return None if folder is None or not name else posixpath.join(folder, name)
