"""Other tables whose files may lie where this one's do: nobody may delete there what one table alone does not name.

Iceberg lets any number of tables have one location, or one below another's, in one catalog or in several.
"""

from __future__ import annotations

import json
import logging
import posixpath
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from laketier_iceberg.locations import Below

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from laketier.spi import TableFolder

log = logging.getLogger(__name__)

DATA_PATH = "write.data.path"
METADATA_PATH = "write.metadata.path"
METADATA_SUFFIX = ".metadata.json"
_GZIP = b"\x1f\x8b"
_MOST = 256 * 1024 * 1024
"""Bytes of a metadata file that are looked at, also unpacked."""


def neighbour(catalog: Catalog, table: Table, below: Below) -> str | None:
    """The name of another table of the catalog that has files, or may get some, below this one's location; None when
    there is none. Loads each table of the catalog. Driver."""
    own = table.name()
    for name in _tables(catalog):
        if name == own:
            continue
        try:
            other = catalog.load_table(name)
        except Exception as error:  # noqa: BLE001 - whatever another table has, it is not this one's to be stopped by
            log.warning("table %s can't be read, so where its files are is not known: %s", ".".join(name), error)
            continue
        if any(below.path(folder) is not None for folder in _folders(other)):
            return ".".join(name)
    return None


def foreign_metadata(folder: TableFolder, paths: Iterable[str], table_uuid: str) -> str | None:
    """The first of ``paths`` that is a metadata file of another table; None for none. This table's catalog need not
    know that one. A file that is torn is of no table: a writer was killed. Raises `OSError`."""
    for path in paths:
        if METADATA_SUFFIX in path and _uuid_in(folder, path) not in (None, table_uuid):
            return path
    return None


def _uuid_in(folder: TableFolder, path: str) -> str | None:
    try:
        with folder.filesystem.open_input_stream(folder.full(path), compression=None) as stream:
            data = stream.read(_MOST)
        if data.startswith(_GZIP):
            data = zlib.decompressobj(wbits=31).decompress(data, _MOST)
        document: Any = json.loads(data)
        return str(document["table-uuid"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        log.info("%s is not read as a metadata file: %s", path, error)
        return None


def _folders(table: Table) -> Iterator[str]:
    metadata: TableMetadata = table.metadata
    yield metadata.location
    for key in (DATA_PATH, METADATA_PATH):
        if metadata.properties.get(key):
            yield metadata.properties[key]
    yield posixpath.dirname(table.metadata_location)


def _tables(catalog: Catalog, namespace: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if namespace:
        yield from catalog.list_tables(namespace)
    for each in catalog.list_namespaces(namespace):
        # Some catalogs answer with the whole name, some with the names below, some with the namespace itself.
        child = tuple(each) if tuple(each)[: len(namespace)] == namespace else (*namespace, *each)
        if len(child) > len(namespace):
            yield from _tables(catalog, child)
