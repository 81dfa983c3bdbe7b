"""Creates, alters, finds and drops the tables of a warehouse. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from laketier.spi.errors import IncompatibleTable
from laketier.spi.schema import AddColumn, RenameColumn, SchemaChange, SetProperty, WidenColumn, widens
from laketier.spi.table import TableDescriptor, TableInfo, TablePath


class LakeCatalog(ABC):
    """The tables of one warehouse. Driver only, used by one thread. Several processes may use one warehouse at once."""

    @abstractmethod
    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        """Create a table, or return the existing one when it is the same. Idempotent, also under a race. Creates the
        database when it is missing. A table that is there stays as it is, its comment and properties too.

        Args:
            path: The name of the table.
            descriptor: Its schema, partitions, buckets and key.

        Returns:
            The table as it is now.

        Raises:
            IncompatibleTable: A table with another schema, partitioning or bucketing exists, or one of another format.
            UnsupportedType: The format would have to change a column's values.
            FeatureNotSupported: The format does not support these partitions, buckets or keys.
        """

    @abstractmethod
    def load_table(self, path: TablePath) -> TableInfo:
        """Load a table as it is now, never from a cache.

        Args:
            path: The name of the table.

        Returns:
            The table, with its handle where the plugin keeps one (`TableInfo.with_handle`).

        Raises:
            TableNotFound: There is no such table.
            CorruptTable: Its metadata is damaged.
        """

    @abstractmethod
    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        """Apply schema changes in one atomic step, in their order. Idempotent: adding a column that exists with the
        same type changes nothing. Watermarks stay, and so do columns that others add at the same time. Files that were
        staged before carry the old fingerprint, so they are refused when they are to be published.

        Args:
            path: The name of the table.
            changes: Either additions alone, or changes of existing columns alone, or of properties alone: not every
                format does all in one step. A `SetProperty` comes only to a format with `Feature.SET_PROPERTY`.

        Returns:
            The table after the changes.

        Raises:
            TableChanged: A property was changed meanwhile (`SetProperty`).
            IncompatibleTable: An added column exists with another type or in another case, or is not nullable, or
                `reshaped` refuses a change.
            UnsupportedType: The format has no such type as an added column, or a wider one, asks for.
            FeatureNotSupported: The format does not support this kind of change.
        """

    @abstractmethod
    def drop_table(self, path: TablePath) -> None:
        """Delete a table and its data.

        Args:
            path: The name of the table.

        Raises:
            TableNotFound: There is no such table.
        """

    @abstractmethod
    def list_tables(self, database: str | None = None) -> list[TablePath]:
        """List the tables of this format.

        Args:
            database: Only the tables of this database. None lists those of all databases.

        Returns:
            The names, sorted.
        """

    # -- what a catalog may know of a table without loading it: the cache of metadata lives by it --------------------

    def table_version(self, path: TablePath, known: str | None = None) -> str | None:
        """Name the state that a table is in, at the cost of one small request or a few calls of `os.stat`. Any thread.
        Loads nothing, and changes nothing.

        Of two equal names `load_table` tells the same: the same uuid, schema, properties and snapshot.
        A table that was committed to, altered, or dropped and created again has another name, whoever did it. The name
        is the same in all processes of a host, and holds no secret.

        The default knows nothing. Then descriptions of the table are not kept (see `lake.metadata-cache`), and
        everything else works.

        Args:
            path: The name of the table.
            known: The name that the table had before, if the caller has one. It may make the look cheaper, and never
                changes what is returned.

        Returns:
            The name. None where it can't be told cheaply, where there is no such table, or where its state is not
            settled.
        """
        return None

    def handle_bytes(self, table: TableInfo) -> int | None:
        """Estimate how much memory the handle of a table takes, so that a cache which keeps handles stays within its
        bounds. Any thread.

        Args:
            table: A table that this catalog loaded, with its handle.

        Returns:
            The bytes. None where that is not known; such a handle is not kept.
        """
        return None


def same_table(found: TableInfo, wanted: TableDescriptor) -> TableInfo:
    """Check that an existing table equals the table that `LakeCatalog.create_table` has to create.

    Args:
        found: The existing table.
        wanted: The schema, partitions and buckets that were asked for, as the format would store them. Its primary key
            is compared only if it has one.

    Returns:
        ``found``.

    Raises:
        IncompatibleTable: The two differ.
    """
    there = found.descriptor
    for what, has, asked in (
        ("schema", there.schema, wanted.schema),
        ("partitioning", there.partition_by, wanted.partition_by),
        ("bucketing", there.buckets, wanted.buckets),
        ("primary key", there.primary_key, wanted.primary_key or there.primary_key),
    ):
        if has != asked:
            raise IncompatibleTable(
                f"the table exists with another {what}",
                where=str(found.path),
                why=f"it has {_shown(has)}, and {_shown(asked)} was asked for",
                fix="Use another name, drop the table first, or add the missing columns with mergeSchema.",
            )
    return found


def reshaped(table: TableInfo, changes: Sequence[SchemaChange]) -> pa.Schema:
    """Compute the schema of a table after `WidenColumn` and `RenameColumn` changes. Other changes are skipped. Columns
    keep their positions, so the old and the new schema can be compared column by column.

    Args:
        table: The table before the changes.
        changes: The changes. Those that are done already are skipped.

    Returns:
        The new schema.

    Raises:
        IncompatibleTable: A column does not exist, a name is taken (also in another case, or by another of the
            changes), a column is renamed twice, a type does not hold all values, or the column is one of the
            partitions, buckets or the primary key, whose old values and names decided where rows were put.
    """
    schema = table.schema
    renames = [change for change in changes if isinstance(change, RenameColumn)]
    _refuse_renamed_twice(renames, where=str(table.path))
    lasting = {*schema.names} - {each.old for each in renames}
    done = {each.old: each.new for each in renames if each.new in lasting and each.old not in schema.names}
    for change in changes:
        if isinstance(change, AddColumn | SetProperty) or (isinstance(change, RenameColumn) and change.old in done):
            continue
        name = change.old if isinstance(change, RenameColumn) else done.get(change.name, change.name)
        if name not in schema.names:
            raise IncompatibleTable(f"there is no column {name!r} to change", where=str(table.path))
        index = schema.get_field_index(name)
        field = schema.field(index)
        if isinstance(change, WidenColumn) and field.type.equals(change.type):
            continue
        if name in _laid_out_by(table.descriptor):
            raise IncompatibleTable(
                f"column {name!r} can't be changed",
                where=str(table.path),
                why="the table's rows lie in files by it, as its partition, bucket or key",
                fix="Make a new table with the new column, and tier into that.",
            )
        schema = schema.set(index, _changed(table, schema, field, change))
    _refuse_folded(schema, changes, where=str(table.path))
    return schema


def _refuse_renamed_twice(renames: Sequence[RenameColumn], *, where: str) -> None:
    """A name that came and went would not tell whether the rename is done: of two columns that change their names by
    way of a third name, the last rename looks like one that was done, before the first one is."""
    given: set[str] = set()
    for rename in renames:
        if rename.old in given and rename.old != rename.new:
            raise IncompatibleTable(
                f"column {rename.old!r} can't be renamed to {rename.new!r}",
                where=where,
                why="another rename of the same call gives that name, and a call renames a column once",
                fix="Rename the column to its last name at once, or make each rename a call of its own.",
            )
        given.add(rename.new)


def _refuse_folded(schema: pa.Schema, changes: Sequence[SchemaChange], *, where: str) -> None:
    """A `TableDescriptor` has no two columns that differ by case only, so a table that got them could not be opened."""
    added = [change.field.name for change in changes if isinstance(change, AddColumn)]
    folded: dict[str, str] = {}
    for name in dict.fromkeys([*schema.names, *added]):
        if (taken := folded.setdefault(name.lower(), name)) != name:
            raise IncompatibleTable(
                f"column {name!r} can't be added",
                where=where,
                why=f"it differs from column {taken!r} by case only, and most readers fold case",
                fix="Use another name.",
            )


def _laid_out_by(descriptor: TableDescriptor) -> set[str]:
    buckets = descriptor.buckets.keys if descriptor.buckets else ()
    return {*(field.column for field in descriptor.partition_by), *buckets, *descriptor.primary_key}


def _changed(table: TableInfo, schema: pa.Schema, field: pa.Field, change: WidenColumn | RenameColumn) -> pa.Field:
    if isinstance(change, WidenColumn):
        if not widens(field.type, change.type):
            raise IncompatibleTable(
                f"column {field.name!r} is {field.type}, which can't become {change.type}",
                where=str(table.path),
                why="that type does not hold all of its values, or is of another kind",
                fix="Add a column of the new type under another name.",
            )
        return field.with_type(change.type)
    taken = next((n for n in schema.names if n != field.name and n.lower() == change.new.lower()), None)
    if taken is not None:
        raise IncompatibleTable(
            f"column {field.name!r} can't be renamed to {change.new!r}",
            where=str(table.path),
            why=f"there is a column {taken!r} already",
            fix="Use another name, or drop that column first.",
        )
    return field.with_name(change.new)


def _shown(value: object) -> str:
    if isinstance(value, pa.Schema):
        value = tuple(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in value)
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
