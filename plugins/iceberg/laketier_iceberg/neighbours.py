"""Other tables whose files may lie where this one's do: nobody may delete there what one table alone does not name.

Iceberg lets any number of tables have one location, or one below another's, in one catalog or in several.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from laketier_iceberg.locations import Below
from laketier_iceberg.references import name_of
from laketier_iceberg.stored import DAMAGE, document, document_at, metadata_files

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from laketier.kit import TableFolder

log = logging.getLogger(__name__)

DATA_PATH = "write.data.path"
METADATA_PATH = "write.metadata.path"
METADATA_SUFFIX = ".metadata.json"
_VERSION = re.compile(r"v\d+\.")
"""How a metadata file of a catalog of files alone begins: ``v7.metadata.json``, ``v7.gz.metadata.json``."""
_GZIP = b"\x1f\x8b"
_MOST = 256 * 1024 * 1024
"""Bytes of a metadata file that are looked at, also unpacked."""
_REMEMBERED = 100_000
_Told = TypeVar("_Told")


def neighbour(catalog: Catalog, table: Table, below: Below, *, unread: bool = False) -> str | None:
    """The name of another table of the catalog that has files, or may get some, below this one's location; None when
    there is none. ``unread``: whether one counts that can't be read, so that nobody knows. Driver."""
    for each in _others(catalog, table.name()):
        if any(below.path(folder) is not None for folder in each.folders) or (unread and not each.is_read):
            return each.name
    return None


class _Other(NamedTuple):
    name: str
    folders: tuple[str, ...]
    is_read: bool


def _others(catalog: Catalog, own: tuple[str, ...]) -> Iterator[_Other]:
    """Each other table, and where its files are. Of a SQL catalog one query, and each metadata file once in a process;
    of other catalogs each table is loaded."""
    files = metadata_files(catalog)
    for name in _tables(catalog) if files is None else files:
        if tuple(name) == own:
            continue
        try:
            found = _folders(catalog.load_table(name)) if files is None else _folders_in(catalog, files[name])
        except Exception as error:  # noqa: BLE001 - whatever another table has, it is not this one's to be stopped by
            log.warning("table %s can't be read, so where its files are is not known: %s", ".".join(name), error)
            yield _Other(".".join(name), () if files is None else (posixpath.dirname(files[name]),), is_read=False)
        else:
            yield _Other(".".join(name), found, is_read=True)


_known: OrderedDict[str, tuple[str, ...]] = OrderedDict()
"""Location of a metadata file, which never changes → the folders that it names."""


def _folders_in(catalog: Catalog, file: str) -> tuple[str, ...]:
    found = _known.get(file)
    if found is None:
        stored = document(catalog, file)
        properties = stored.get("properties") or {}
        given = filter(None, (properties.get(key) for key in (DATA_PATH, METADATA_PATH)))
        found = (stored["location"], *given, posixpath.dirname(file))
        if not all(isinstance(folder, str) for folder in found):
            raise TypeError(f"{file} has a folder that is no text")
        _known[file] = found
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


def foreign_metadata(folder: TableFolder, paths: Iterable[str], table_uuid: str) -> str | None:
    """The first of ``paths`` that is a metadata file of another table, or of a view; None for none. This table's
    catalog need not know that one. A file that is torn is of no table: a writer was killed. Raises `OSError`."""
    for path in paths:
        if METADATA_SUFFIX in path and _uuid_in(folder, path) not in (None, table_uuid):
            return path
    return None


def another_line(folder: TableFolder, paths: Iterable[str], table: Table) -> str | None:
    """The first of ``paths`` that is a metadata file of this table and goes on from one that the table's metadata do
    not know; None for none. Somebody takes that one for the newest: another catalog in which the table was registered,
    or this one before it was put back from a backup. A file that goes on from a known one tells nothing, as a commit
    that lost leaves one, too, unless it is of a catalog of files alone (Hadoop's), which counts versions in the names:
    there, none is left of a commit that lost. Where older files are gone, as tables delete them after commits, nothing
    tells which of those before the gap are older: then a file counts that has, in its log, an unknown one after a known
    one. Raises `OSError`."""
    metadata = table.metadata
    known = [*(entry.metadata_file for entry in metadata.metadata_log), table.metadata_location]
    names = {name_of(location) for location in known}
    unknown = {name: path for path in paths if METADATA_SUFFIX in path and (name := name_of(path)) not in names}
    if len(unknown) < 2 and not any(map(_VERSION.match, unknown)):
        return None
    is_whole = True
    try:
        older = set(_logged(document_at(table.io.properties, known[0])))
    except (FileNotFoundError, KeyError, TypeError, *DAMAGE) as error:
        log.info("%s is not read as a metadata file: %s", known[0], error)
        older, is_whole = set(), False
    logs = {name: found for name, path in unknown.items() if (found := _read(folder, path, _logged)) is not None}
    left = list(older)
    while left:
        before = set(logs.get(left.pop(), ())) - older
        older |= before
        left += before
    others, known_names = logs.keys() - older, older | names
    is_whole = is_whole and older <= logs.keys() | names

    def goes_on(name: str) -> bool:
        before = logs[name]
        if _VERSION.match(name) and before and before[-1] in known_names:
            return True
        first = 0 if is_whole else next((at for at, each in enumerate(before) if each in known_names), len(before))
        return not others.isdisjoint(before[first:])

    return next((unknown[name] for name in sorted(others) if goes_on(name)), None)


def _logged(stored: Mapping[str, Any]) -> list[str]:
    """The names of the files before it, oldest first, as a metadata file has them. Each is one object however many
    files have it."""
    return [sys.intern(name_of(entry["metadata-file"])) for entry in stored.get("metadata-log") or []]


def _uuid_in(folder: TableFolder, path: str) -> str | None:
    return _read(folder, path, lambda stored: str(stored["table-uuid" if "table-uuid" in stored else "view-uuid"]))


def _read(folder: TableFolder, path: str, told: Callable[[dict[str, Any]], _Told]) -> _Told | None:
    """What a metadata file tells; None for one that is torn or gone. Raises `OSError`."""
    try:
        with folder.filesystem.open_input_stream(folder.full(path), compression=None) as stream:
            data = stream.read(_MOST)
        if data.startswith(_GZIP):
            data = zlib.decompressobj(wbits=31).decompress(data, _MOST)
        return told(json.loads(data))
    except (FileNotFoundError, AttributeError, KeyError, TypeError, *DAMAGE) as error:
        log.info("%s is not read as a metadata file: %s", path, error)
        return None


def _folders(table: Table) -> tuple[str, ...]:
    metadata: TableMetadata = table.metadata
    given = (metadata.properties.get(key) for key in (DATA_PATH, METADATA_PATH))
    return metadata.location, *filter(None, given), posixpath.dirname(table.metadata_location)


def _tables(catalog: Catalog, namespace: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if namespace:
        yield from catalog.list_tables(namespace)
    for each in catalog.list_namespaces(namespace):
        # Some catalogs answer with the whole name, some with the names below, some with the namespace itself.
        child = tuple(each) if tuple(each)[: len(namespace)] == namespace else (*namespace, *each)
        if len(child) > len(namespace):
            yield from _tables(catalog, child)
