"""Tables as a SQL catalog and its metadata files hold them, whether or not pyiceberg can parse them. Driver."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import TextClause

DAMAGE = (ValueError, EOFError, zlib.error, RecursionError)
"""What reading a metadata file raises, beside `OSError`, that is cut short, or is not what its name says."""


def metadata_files(catalog: Catalog) -> Mapping[tuple[str, ...], str] | None:
    """Name → location of the current metadata file, of every table and view, in one query. None where the catalog is
    behind a server, which keeps that to itself."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    if not isinstance(catalog, SqlCatalog):
        return None
    columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
    with Session(catalog.engine) as session:
        rows = session.execute(select(*columns).where(IcebergTables.catalog_name == catalog.name)).all()
    return {(*namespace.split("."), name): location for namespace, name, location in rows if location is not None}


def metadata_file(catalog: Catalog, name: tuple[str, ...]) -> str | None:
    """The location of a table's current metadata file; None where the catalog does not say. ``name``: its namespace
    and its own."""
    from pyiceberg.catalog.sql import SqlCatalog

    if not isinstance(catalog, SqlCatalog):
        return None
    with catalog.engine.connect() as connection:
        location: str | None = connection.scalar(
            _of_one_table(), {"catalog": catalog.name, "namespace": ".".join(name[:-1]), "table": name[-1]}
        )
    return location


@functools.cache
def _of_one_table() -> TextClause:
    """The question for a table's metadata file. A round asks it several times. It is text, as are the others below:
    a process that asks once would take longer to put it together of columns than to ask it."""
    from sqlalchemy import text

    return text(
        "SELECT metadata_location FROM iceberg_tables"
        " WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
    )


def has_namespace(catalog: SqlCatalog, namespace: str) -> bool:
    """Whether a SQL catalog has a namespace, or a table, a view or a namespace in it."""
    below = namespace.replace("!", "!!").replace("_", "!_").replace("%", "!%") + ".%"
    asked = {"catalog": catalog.name, "namespace": namespace, "below": below}
    with catalog.engine.connect() as connection:
        return any(connection.scalar(each, asked) is not None for each in _of_a_namespace())


@functools.cache
def _of_a_namespace() -> tuple[TextClause, TextClause]:
    """The questions for what is in a namespace, and for its own properties."""
    from sqlalchemy import text

    in_tables, in_own = (
        text(
            f"SELECT 1 FROM {table} WHERE catalog_name = :catalog"
            f" AND ({column} = :namespace OR {column} LIKE :below ESCAPE '!') LIMIT 1"
        )
        for table, column in (
            ("iceberg_tables", "table_namespace"),
            ("iceberg_namespace_properties", "namespace"),
        )
    )
    return in_tables, in_own


def document(catalog: Catalog, location: str) -> dict[str, Any]:
    """A metadata file as it is stored. Raises `OSError` and what is in `DAMAGE`."""
    return document_at(catalog.properties, location)


def document_at(properties: Mapping[str, str], location: str) -> dict[str, Any]:
    """The same, where no catalog is open. ``properties``: of the FileIO."""
    from pyiceberg.io import load_file_io
    from pyiceberg.serializers import Compressor

    with (
        load_file_io(dict(properties), location).new_input(location).open() as stream,
        Compressor.get_compressor(location=location).stream_decompressor(stream) as text,
    ):
        found = json.loads(text.read())
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - damage
    return found
