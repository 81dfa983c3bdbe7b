"""The options of the format: ``lake.localfile.*``."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from laketier.kit.file_names import FileNames
from laketier.kit.parquet_tuning import ParquetTuning
from laketier.kit.partition import OddPartitionValues
from laketier.spi import Passthrough, option


class FileFormatName(enum.Enum):
    """The file formats of data files."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    VORTEX = "vortex"


class TextCompression(enum.Enum):
    """Codecs of whole files of lines."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


class ArrowCompression(enum.Enum):
    """Codecs of buffers in Arrow's files."""

    NONE = "none"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True)
class LocalFileOptions(ParquetTuning):
    """How data files are cut and encoded, and how the history is kept."""

    file_format: FileFormatName | None = option(
        None,
        "New tables: parquet (when unset), json (lines), csv, arrow (IPC) or vortex (an extra). A table keeps its own.",
    )
    text_compression: TextCompression = option(
        TextCompression.NONE, "Codec of files of lines, which their names tell (.json.gz): none, gzip or zstd."
    )
    arrow_compression: ArrowCompression = option(
        ArrowCompression.LZ4, "Codec of the buffers in Arrow's files: none, lz4 or zstd."
    )
    file_names: FileNames = option(
        FileNames.ATTEMPT,
        "What tells names of data files apart: the attempt, also spelled as uuid (looks random), uuidv7 or ulid (both "
        "sort by time), or serial, which puts the number of the commit before it.",
    )
    file_prefix: str = option("", "Text before the names of data files.")
    file_suffix: str = option("", "Text behind the names of data files, before their end such as .parquet.")
    partition_columns_in_files: bool | None = option(
        None,
        "New tables: whether files hold the columns of lake.partition-by, too, beside the names of folders: true (when "
        "unset) or false. Columns of transforms are always there. A table keeps its own.",
    )
    time_pattern: str | None = option(
        None,
        "New tables that are partitioned by year, month, day, hour or minute of a column: how its folders are named, "
        "such as %Y/%m/%d/%H, in UTC. Unset: as ts_hour=2026-11-24-10. A table keeps its own.",
    )
    odd_partition_values: OddPartitionValues = option(
        OddPartitionValues.REFUSE,
        "Rows whose partition can't name a folder (an empty text, a name over 255 bytes): refuse, or accept, which "
        "names the folder by a digest; the value is in the file.",
    )
    manifests_per_rollup: int = option(
        32, "New tables: after how many manifests their file lists are rolled up.", least=2
    )
    open_files: bool = option(
        False,
        "Data files of plain json, plain csv or arrow stay open across epochs, in a process that lives over epochs "
        "(`laketier serve --engine local`, `laketier.open_writer`). Refused elsewhere.",
    )
    fold_files: int = option(
        50,
        "Small files that a partition (and bucket) keeps: the commit that makes it one more also writes the earlier "
        "ones as one. 0 for never.",
        least=0,
    )
    fold_file_bytes: int = option(8 * 1024 * 1024, "A file is small, for fold-files, below this size.", least=1)
    require_metadata: bool = option(
        True,
        "Whether a table without its manifests is refused. False: readers get what all files in place hold, by "
        "inference, with a warning. Writers are refused in any case.",
    )
    storage: Passthrough = option(
        Passthrough(),
        "How a warehouse in S3 is reached, in the words of the library obstore: region, endpoint, access_key_id, "
        "secret_access_key, session_token, virtual_hosted_style_request, … An http endpoint allows plain HTTP by "
        "itself.",
    )
