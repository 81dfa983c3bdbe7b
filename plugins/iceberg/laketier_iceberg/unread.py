"""Why pyiceberg can't parse a table's metadata: something newer than it is, or damage. Driver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from gzip import BadGzipFile
from typing import TYPE_CHECKING, Any

from laketier.spi import CorruptTable, FeatureNotSupported, LaketierError, TablePath, UnsupportedType
from laketier_iceberg.stored import DAMAGE, document, metadata_file

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

FORMAT = "iceberg"
NEWEST_VERSION = 3
_SPARK = "Use Spark for this table."


def is_unreadable(error: Exception) -> bool:
    """Whether pyiceberg raises ``error`` where it can't parse metadata. `refusal` says what is the matter."""
    from pyiceberg.exceptions import ValidationError

    kinds = (ValidationError, KeyError, TypeError, ArithmeticError, NotImplementedError, *DAMAGE)
    return isinstance(error, (FileNotFoundError, BadGzipFile, *kinds))


def refusal(error: Exception, catalog: Catalog, path: TablePath, warehouse: str) -> LaketierError:
    """What to raise for ``error``. A healthy table with something that pyiceberg does not know is not called corrupt:
    the refusal names it, and its column where the catalog says where the metadata is."""
    where = f"{path} in {warehouse}"
    file = metadata_file(catalog, (path.database, path.table))
    try:
        found = None if file is None else _unknown(document(catalog, file))
    except (OSError, *DAMAGE):
        found = None
    if found is not None:
        found.where = where
        return found
    if "Unsupported field type" in str(error) or "Type not recognized" in str(error):
        return FeatureNotSupported(
            "a column's type", format=FORMAT, reason=f"of {where} pyiceberg says: {_one_line(error)}", fix=_SPARK
        )
    fix = "Restore the metadata file that the catalog names, or register an older one with the catalog."
    if isinstance(error, FileNotFoundError):
        fix += (
            " If the warehouse was moved: Iceberg's metadata names files by their whole paths, so move it back, or, on "
            "a file system, make its former place a link to it."
        )
    return CorruptTable(
        "the table's metadata can't be read",
        where=where if file is None else f"{where}, {file}",
        why=f"{type(error).__name__}: {_one_line(error)}",
        fix=fix,
    )


def unreadable(column: str, kind: str) -> UnsupportedType:
    """The refusal of a table for the type of one column."""
    return UnsupportedType(
        f"column {column!r} is of Iceberg's type {kind}, which can't be read or written here",
        why="neither pyiceberg nor Arrow keeps its values as they are",
        fix="Use Spark for this table, or drop the column.",
    )


def _unknown(stored: Mapping[str, Any]) -> LaketierError | None:
    version = stored.get("format-version")
    if isinstance(version, int) and version > NEWEST_VERSION:
        return FeatureNotSupported(
            f"tables of version {version}",
            format=FORMAT,
            reason=f"pyiceberg reads versions up to {NEWEST_VERSION}",
            fix=_SPARK,
        )
    try:
        for schema in stored.get("schemas") or [stored["schema"]]:
            for name, kind, default in _columns(schema, ""):
                if isinstance(kind, str) and not _is_known(kind):
                    return unreadable(name, kind)
                if default is not None and not (isinstance(kind, str) and _is_known(kind, default)):
                    return FeatureNotSupported(
                        "this initial default",
                        format=FORMAT,
                        reason=f"column {name!r} has {json.dumps(default)} in files that lack it, and pyiceberg does "
                        f"not understand that for {json.dumps(kind) if isinstance(kind, str) else kind['type']}",
                        fix=_SPARK,
                    )
        for spec in stored.get("partition-specs") or []:
            for field in spec["fields"]:
                if len(field.get("source-ids") or ()) > 1:
                    return FeatureNotSupported(
                        "partitions by several columns at once",
                        format=FORMAT,
                        reason=f"the partition field {field.get('name')!r} is one",
                        fix=_SPARK,
                    )
    except (KeyError, TypeError, AttributeError):
        return None  # damaged, not new
    return None


def _columns(kind: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and initial default of each column, at every level."""
    for field in kind["fields"]:
        yield f"{above}{field['name']}", field["type"], field.get("initial-default")
        yield from _inside(field["type"], f"{above}{field['name']}.")


def _inside(kind: Any, above: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _columns(kind, above)
    for part in ("element", "key", "value"):
        if part in kind:
            yield f"{above}{part}", kind[part], None
            yield from _inside(kind[part], f"{above}{part}.")


def _is_known(kind: str, default: Any = None) -> bool:
    from pyiceberg.conversions import from_json
    from pyiceberg.types import IcebergType

    try:
        parse: Any = IcebergType.handle_primitive_type
        parsed = parse(kind, None)
        if default is not None:
            from_json(parsed, default)
    except (ValueError, TypeError, NotImplementedError, ArithmeticError):
        return False
    return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
