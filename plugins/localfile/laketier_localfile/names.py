"""Names of file formats, for modules that need no more of them."""

from __future__ import annotations

from laketier.kit.manifests import FORMAT_PROPERTY

FILE_FORMAT = FORMAT_PROPERTY
"""The table's property. A table of Parquet files has none, as those of older versions."""
PARQUET = "parquet"

JSON_ENDS = tuple(f"{end}{codec}" for end in (".json", ".jsonl", ".ndjson") for codec in ("", ".gz", ".zst"))
CSV_ENDS = (".csv", ".csv.gz", ".csv.zst")
ARROW_ENDS = (".arrow", ".feather", ".ipc")
ADOPTABLE = (".parquet", *JSON_ENDS, *CSV_ENDS, *ARROW_ENDS, ".vortex")
"""The ends of the names of files that others wrote, and that a table may have."""
SUFFIX = r"\.(?:parquet|(?:json|csv)(?:\.gz|\.zst)?|arrow|vortex)"
"""A regular expression of the ends of data files' names."""
