"""Table metadata: what becomes of a schema when input arrives."""

from laketier.metadata.evolution import TableLayout, logical_schema, prepare_table

__all__ = ["TableLayout", "logical_schema", "prepare_table"]
