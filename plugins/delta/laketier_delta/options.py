"""The keys below ``lake.delta``."""

from __future__ import annotations

from dataclasses import dataclass

from laketier.kit.file_names import NameSettings
from laketier.kit.parquet import ParquetSettings
from laketier.kit.partition import OddPartitionValues
from laketier.spi import Passthrough, option


@dataclass(frozen=True)
class DeltaOptions(ParquetSettings, NameSettings):
    """Options of the Delta format, each set by ``lake.delta.<name with dashes>``."""

    odd_partition_values: OddPartitionValues = option(
        OddPartitionValues.REFUSE,
        "Rows whose partition Delta or a folder's name can't hold: refuse, or accept, which makes an empty text null, "
        "as delta-spark does, and names the folder of a long one by a digest.",
    )
    checkpoint_interval: int = option(
        10, "Commits between checkpoints where the table does not say so itself (delta.checkpointInterval).", least=1
    )
    accept_transaction_retention: bool = option(
        False,
        "Write to tables that set delta.setTransactionRetentionDuration, although they forget an idle pipeline after "
        "that time and would then refuse it.",
    )
    storage: Passthrough = option(
        Passthrough(),
        "Options of delta-rs's object store, as in storage_options: AWS_ENDPOINT_URL, AWS_REGION, … An http endpoint "
        "allows plain HTTP by itself.",
    )
