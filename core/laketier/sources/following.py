"""Whether a source's table is still the one that a round read."""

from __future__ import annotations

from laketier.spi import LogTable, SchemaChanged, TableChanged


def check_same(before: LogTable, now: LogTable, *, where: str) -> None:
    """Raises `TableChanged`, or `SchemaChanged` for the same table with other columns.

    A schema that is the same after all was read was so while it was read: no record was made a row by an older schema
    than it was written with, which would lose what that one has no column for.
    """
    if now.table_id != before.table_id:
        raise TableChanged(
            f"the source's table {before.name!r} was made anew while it was read: its id was {before.table_id!r} "
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
