"""The lake table follows its source's table, as long as that is still the same one."""

from __future__ import annotations

from dataclasses import replace

from laketier.registry import Lake
from laketier.rounds.changes import check_key
from laketier.rounds.keyed import rows_of_changes
from laketier.spi import ConfigError, LogTable, SchemaChanged, TableChanged, TableInfo, WriteMode, require_mode
from laketier.tables import TableLayout, prepare_table


def check_same(before: LogTable, now: LogTable, *, where: str) -> None:
    """Raises `TableChanged`, or `SchemaChanged` for the same table with other columns.

    A schema that is the same after all was read was so while it was read: no record was made a row by an older schema
    than it was written with, which would lose what that one has no column for.
    """
    if now.table_id != before.table_id:
        raise TableChanged(
            f"the source's table {before.name!r} was recreated while it was read: its id was {before.table_id!r} "
            f"and is {now.table_id!r}",
            where=where,
            fix="Nothing was published.",
        )
    if not now.schema.equals(before.schema) or now.former_names != before.former_names:
        raise SchemaChanged(
            f"the schema of the source's table {before.name!r} changed while it was read",
            where=where,
            fix="Nothing was published; the next round reads with the new schema.",
        )


def prepared_table(lake: Lake, table: LogTable) -> TableInfo:
    """Create the lake table, or bring its columns up to those of the source. Driver.

    A new table has the source's partitions and buckets, unless the user chose others. Columns that the source added,
    widened or renamed since are changed in the lake, too. Of a table with a primary key, the column with the change
    type is not stored.
    """
    where = str(lake.config.table)
    require_mode(lake.config.format, lake.plugin.features, mode_of(table))
    schema = rows_of_changes(table.schema, table.change_column) if table.primary_key else table.schema
    if table.primary_key:
        check_key(schema, table.primary_key, where=where)
    follows = replace(lake, config=replace(lake.config, merge_schema=True))
    layout = TableLayout(table.partition_by, table.buckets, table.primary_key)
    found = prepare_table(follows, schema, layout, former_names=table.former_names)
    if found.table_uuid == table.table_id:
        raise ConfigError(
            "the table would be tiered into itself",
            where=where,
            fix="Set another target. If the source is a lake, prefer another warehouse.",
        )
    return found


def mode_of(table: LogTable) -> WriteMode:
    """How rounds of it write."""
    return WriteMode.UPSERT if table.primary_key else WriteMode.APPEND
