"""A lake snapshot and the log beyond it, read as one; it may use `rounds` and the rooms below that."""
