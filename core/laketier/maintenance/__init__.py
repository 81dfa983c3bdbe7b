"""Maintenance of tables without an engine: the collection of orphans; it may use `tiering` and the rooms below that."""
