"""Records that could not be made rows: kept, listed and replayed; it may use `tiering` and the rooms below that."""
