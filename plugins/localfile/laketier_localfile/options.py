"""The options of the format: ``lake.localfile.*``."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.kit.parquet import Compression, ParquetSettings
from laketier.kit.partition import OddPartitionValues
from laketier.spi import ConfigError, option


@dataclass(frozen=True)
class LocalFileOptions:
    """How data files are cut and encoded, and how the history is kept."""

    target_file_rows: int = option(10_000_000, "A data file is closed once it holds this many rows.")
    target_file_bytes: int = option(512 * 1024 * 1024, "A data file is closed once it has about this many bytes.")
    row_group_rows: int = option(1_048_576, "Rows per Parquet row group, at most.")
    compression: Compression = option(Compression.ZSTD, "Codec of data files: zstd, snappy, lz4 or none.")
    compression_level: int | None = option(None, "Level of the codec; the codec's own default when unset.")
    odd_partition_values: OddPartitionValues = option(
        OddPartitionValues.REFUSE,
        "Rows whose partition can't name a folder (an empty text, a name over 255 bytes): refuse, or accept, which "
        "names the folder by a digest; the value is in the file.",
    )
    manifests_per_rollup: int = option(32, "New tables: after how many manifests their file lists are rolled up.")

    def __post_init__(self) -> None:
        for name in ("target_file_rows", "target_file_bytes", "row_group_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"lake.localfile.{name.replace('_', '-')} is {getattr(self, name)}", fix="Set it to 1 or more."
                )
        if self.manifests_per_rollup < 2:
            raise ConfigError(
                f"lake.localfile.manifests-per-rollup is {self.manifests_per_rollup}", fix="Set it to 2 or more."
            )

    @property
    def parquet(self) -> ParquetSettings:
        """The settings of the Parquet writer."""
        return ParquetSettings(
            target_file_rows=self.target_file_rows,
            target_file_bytes=self.target_file_bytes,
            row_group_rows=self.row_group_rows,
            compression=self.compression,
            compression_level=self.compression_level,
        )
