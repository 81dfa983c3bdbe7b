"""The tiering service: many tables of many sources, each moved into the lake as its freshness asks; it may use every
room but `cli`."""
