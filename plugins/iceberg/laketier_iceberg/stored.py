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
    from sqlalchemy import Select

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
def _of_one_table() -> Select[str | None]:
    """The question for a table's metadata file. A round asks it several times, and to make it takes longer than to
    ask it, as does a session of SQLAlchemy's."""
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import bindparam, select

    columns = IcebergTables.__table__.c
    return select(columns.metadata_location).where(
        columns.catalog_name == bindparam("catalog"),
        columns.table_namespace == bindparam("namespace"),
        columns.table_name == bindparam("table"),
    )


def has_namespace(catalog: SqlCatalog, namespace: str) -> bool:
    """Whether a SQL catalog has a namespace, or a table, a view or a namespace in it."""
    below = namespace.replace("!", "!!").replace("_", "!_").replace("%", "!%") + ".%"
    asked = {"catalog": catalog.name, "namespace": namespace, "below": below}
    with catalog.engine.connect() as connection:
        return any(connection.scalar(each, asked) is not None for each in _of_a_namespace())


@functools.cache
def _of_a_namespace() -> tuple[Select[int], Select[int]]:
    """The questions for what is in a namespace, and for its own properties."""
    from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables
    from sqlalchemy import Integer, bindparam, literal_column, select

    tables, own = IcebergTables.__table__.c, IcebergNamespaceProperties.__table__.c
    (in_tables, in_own) = (
        select(literal_column("1", Integer))
        .where(
            catalog == bindparam("catalog"),
            (namespace == bindparam("namespace")) | namespace.like(bindparam("below"), escape="!"),
        )
        .limit(1)
        for catalog, namespace in ((tables.catalog_name, tables.table_namespace), (own.catalog_name, own.namespace))
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
