"""Table metadata: what becomes of a schema when input arrives."""

from laketier.metadata.evolution import logical_schema, prepare_table

__all__ = ["logical_schema", "prepare_table"]
