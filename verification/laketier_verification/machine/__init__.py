"""Random histories of one real table, against a model that fits on a page."""
