"""Names of file formats, for modules that need no more of them."""

from __future__ import annotations

from laketier.kit.manifests import FORMAT_PROPERTY

FILE_FORMAT = FORMAT_PROPERTY
"""The table's property. A table of Parquet files has none, as those of older versions."""
PARQUET = "parquet"

SUFFIX = r"\.(?:parquet|(?:json|csv)(?:\.gz|\.zst)?|arrow|vortex)"
"""A regular expression of the ends of data files' names."""
