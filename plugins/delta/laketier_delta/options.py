"""The keys below ``lake.delta``."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.kit.parquet import Compression, ParquetSettings
from laketier.kit.partition import OddPartitionValues
from laketier.spi import Passthrough, option


@dataclass(frozen=True)
class DeltaOptions:
    """Options of the Delta format, each set by ``lake.delta.<name with dashes>``."""

    target_file_rows: int = option(10_000_000, "Rows after which a data file is closed.")
    target_file_bytes: int = option(512 * 1024 * 1024, "Bytes after which a data file is closed.")
    row_group_rows: int = option(1_048_576, "Rows per row group.")
    row_group_bytes: int = option(128 * 1024 * 1024, "In-memory bytes per row group.")
    buffer_bytes: int = option(256 * 1024 * 1024, "Memory for rows that wait to be written, per task.")
    max_open_files: int = option(64, "Files of different partitions that one task keeps open.")
    compression: Compression = option(Compression.ZSTD, "Codec of data files: zstd, snappy, lz4 or none.")
    compression_level: int | None = option(None, "Level of the codec, where it has levels.")
    odd_partition_values: OddPartitionValues = option(
        OddPartitionValues.REFUSE,
        "Rows whose partition Delta or a folder's name can't hold: refuse, or accept, which makes an empty text null, "
        "as delta-spark does, and names the folder of a long one by a digest.",
    )
    checkpoint_interval: int = option(
        10, "Commits between checkpoints where the table does not say so itself (delta.checkpointInterval)."
    )
    accept_transaction_retention: bool = option(
        False,
        "Write to tables that set delta.setTransactionRetentionDuration, although they forget an idle pipeline after "
        "that time and would then refuse it.",
    )
    storage: Passthrough = option(
        Passthrough(), "Options of delta-rs's object store, as in storage_options: AWS_ENDPOINT_URL, AWS_REGION, …"
    )

    @property
    def parquet(self) -> ParquetSettings:
        """How data files are cut and encoded."""
        return ParquetSettings(
            target_file_rows=self.target_file_rows,
            target_file_bytes=self.target_file_bytes,
            row_group_rows=self.row_group_rows,
            row_group_bytes=self.row_group_bytes,
            buffer_bytes=self.buffer_bytes,
            max_open_files=self.max_open_files,
            compression=self.compression,
            compression_level=self.compression_level,
        )
