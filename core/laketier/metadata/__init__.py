"""Table metadata: what becomes of a schema when input arrives."""

from laketier.metadata.evolution import prepare_table

__all__ = ["prepare_table"]
