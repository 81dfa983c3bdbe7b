"""A table as its catalog has it now, or why it can't be had. Driver."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from laketier.kit.looks import is_there
from laketier.spi import CorruptTable, IncompatibleTable, LaketierError, TableInfo, TableNotFound, TablePath
from laketier_iceberg.connection import EMBEDDED_FILE, CatalogSettings, connect, naming_catalog_errors
from laketier_iceberg.locations import Below
from laketier_iceberg.lost import lost_metadata
from laketier_iceberg.moved import refuse_moved
from laketier_iceberg.stored import DAMAGE, document, metadata_file, metadata_files
from laketier_iceberg.table_properties import refuse_opening
from laketier_iceberg.unread import is_unreadable, refusal

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_LOOKS = 3
"""A table that is dropped, or changed and cleaned up, takes its metadata file away before who asked for it has read it.
The catalog is asked again then."""


def load(settings: CatalogSettings, path: TablePath) -> Table:
    """The pyiceberg table, fresh from the catalog. Raises `TableNotFound`, `CorruptTable`, `IncompatibleTable` for a
    view, and `FeatureNotSupported` or `UnsupportedType` for what is newer than pyiceberg."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    if settings.embedded and not is_there(settings.database):
        raise _absent(settings, path, None, why=f"the warehouse {settings.warehouse} has no {EMBEDDED_FILE}")
    catalog = connect(settings)
    left = _LOOKS
    while True:
        left -= 1
        try:
            with naming_catalog_errors(settings):
                found = catalog.load_table((path.database, path.table))
            refuse_opening(found.metadata.properties, str(path))  # where a catalog of another kind has not
            if settings.embedded:
                refuse_moved(settings.warehouse, path, found.metadata_location)
            return found
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            absent = _absent(settings, path, catalog)
            if left and isinstance(absent, CorruptTable):
                continue  # another process may have made it in between, or be about to drop it
            raise absent from error
        except Exception as error:
            if isinstance(error, LaketierError) or not is_unreadable(error):
                raise
            if not (left and isinstance(error, FileNotFoundError)):
                raise refusal(error, catalog, path, settings.warehouse) from error


def handle_of(settings: CatalogSettings, table: TableInfo) -> Table:
    """The handle that the table was described from; a fresh one, where the description came from another process."""
    handle: Table | None = table.handle
    return load(settings, table.path) if handle is None else handle


def not_found(path: TablePath, why: str | None = None) -> TableNotFound:
    """What to raise for a table that is not there."""
    return TableNotFound("the table does not exist", where=str(path), why=why, fix="Create it, or check its name.")


def _absent(
    settings: CatalogSettings, path: TablePath, catalog: Catalog | None, why: str | None = None
) -> TableNotFound | CorruptTable | IncompatibleTable:
    """What to raise for a table that ``catalog`` does not know; None where there is no catalog."""
    with naming_catalog_errors(settings):
        if catalog is not None and _is_view(catalog, path):
            return IncompatibleTable(
                "a view has this name, and laketier neither reads nor writes views",
                where=str(path),
                why="another engine made it in the same catalog",
                fix="Use another name for the table, or drop the view with the engine that made it.",
            )
    place = Path(settings.warehouse, path.database, path.table)
    lost = lost_metadata(place) if settings.embedded else None
    if lost is None:
        return not_found(path, why)
    with naming_catalog_errors(settings):
        if catalog is not None and _was_renamed(catalog, path, place):
            return not_found(path, why)
    return CorruptTable(
        "the catalog does not know the table, and its files are there",
        where=str(place),
        why=f"it holds {lost}, of a table that laketier did not drop",
        fix=f"Restore {EMBEDDED_FILE} from a backup, or register that file with the catalog. If another program "
        "dropped the table, or nobody needs its rows, delete the folder.",
    )


def _is_view(catalog: Catalog, path: TablePath) -> bool:
    """Whether a SQL catalog has a view of the name, of which pyiceberg says that there is no such table."""
    file = metadata_file(catalog, (path.database, path.table))
    try:
        return file is not None and "view-uuid" in document(catalog, file)
    except (OSError, *DAMAGE):
        return False


def _was_renamed(catalog: Catalog, path: TablePath, place: Path) -> bool:
    """Whether the catalog has a table of another name whose metadata are in the place: they stay where they are."""
    below = Below(str(place))
    others = {**(metadata_files(catalog) or {})}
    others.pop((path.database, path.table), None)  # another process made it meanwhile
    return any(below.path(posixpath.dirname(file)) is not None for file in others.values())
