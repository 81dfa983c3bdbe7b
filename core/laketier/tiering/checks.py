"""What is compared after each reload, before anything is published."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import TableChanged, TableState, WriteResult


def check_results(state: TableState, results: Sequence[WriteResult]) -> None:
    """Refuse files that were written for another table, schema or partitioning than the one just opened.

    Libraries accept such files and turn values into nulls, or rows into the wrong partition.
    Raises `TableChanged`.
    """
    for result in results:
        if result.table_uuid != state.table_uuid:
            raise TableChanged(
                f"the table was recreated: files were staged for {result.table_uuid}, it is now {state.table_uuid}",
                fix="Restart the query: it will look at the new table and decide from its watermark.",
            )
        if result.schema_fingerprint != state.schema_fingerprint:
            raise TableChanged(
                "the table's schema changed after the files were staged "
                f"(from {result.schema_fingerprint} to {state.schema_fingerprint})",
                fix="Run the round again: it will be staged with the new schema.",
            )
        if result.spec_id != state.spec_id:
            raise TableChanged(
                f"the table's partitioning changed after the files were staged (spec {result.spec_id} to "
                f"{state.spec_id})",
                fix="Run the round again: it will be staged with the new partitioning.",
            )
