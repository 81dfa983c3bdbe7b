"""The keys below ``lake.iceberg.``."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.kit.file_names import NameSettings
from laketier.kit.parquet import Compression
from laketier.kit.rolling_settings import TimeSettings
from laketier.spi import Passthrough, option


@dataclass(frozen=True)
class IcebergOptions(TimeSettings, NameSettings):
    """Options of the Iceberg plugin. What is None follows the table's own ``write.*`` properties."""

    catalog_name: str | None = option(
        None, "A catalog of pyiceberg's own configuration (.pyiceberg.yaml, PYICEBERG_*). None: see catalog.<key>."
    )
    catalog: Passthrough = option(
        Passthrough(),
        "Handed to pyiceberg's load_catalog: type, uri, warehouse, credential, s3.endpoint, … Without any, the "
        "tables are listed in a SQLite file in the warehouse.",
    )
    expire_in_commit: bool = option(
        False,
        "Expire snapshots in each commit, as the table's history.expire.* properties say; keeps commits fast and ends "
        "time travel past them. Branches and tags are honoured.",
    )
    target_file_rows: int = option(10_000_000, "A data file is closed once it has this many rows.", least=1)
    target_file_bytes: int | None = option(
        None,
        "A data file is closed once it has this many bytes. None: write.target-file-size-bytes (512 MB).",
        least=1,
    )
    row_group_rows: int = option(1_048_576, "Rows per Parquet row group.", least=1)
    buffer_bytes: int = option(268_435_456, "Memory for rows that are not written yet, per task.", least=1)
    max_open_files: int = option(64, "Data files that one task keeps open at once.", least=1)
    compression: Compression | None = option(None, "Codec. None: write.parquet.compression-codec (zstd).")
