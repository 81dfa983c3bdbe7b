"""The options of a landing zone, and of one table in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from laketier.codecs.bounds import BLOCK_BYTES, EXPANSION, RECORD_BYTES
from laketier.spi import ConfigError, Passthrough, option


class FileFormat(Enum):
    """How the files of a table are written."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    AVRO = "avro"

    @property
    def is_text(self) -> bool:
        """Whether a record is a line, and its columns have no types."""
        return self in (FileFormat.JSON, FileFormat.CSV)


class Order(Enum):
    """The order of the files that one discovery finds."""

    TIME = "time"
    NAME = "name"


class OnRewritten(Enum):
    """The treatment of a file that was taken and has changed since."""

    FAIL = "fail"
    IGNORE = "ignore"


class ExtraColumns(Enum):
    """The treatment of a file's columns that the table does not have."""

    FAIL = "fail"
    IGNORE = "ignore"


@dataclass(frozen=True)
class LandingOptions:
    """``options.*`` of a source of type ``files``."""

    path: str = option("", "The landing zone: a path, or a URI that pyarrow can open. Each sub-folder is a table.")
    ledger: str | None = option(None, "Where the ledger is kept, a local path; in the landing zone unless given.")
    follow_links: bool = option(False, "Follow symbolic links that stay in the landing zone, instead of refusing them.")
    one_table: bool = option(False, "The landing zone itself is the one table, named '.'.")

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError("options.path is missing", fix="Give the path or URI of the landing zone.")


@dataclass(frozen=True)
class LandingTableOptions:
    """``read.*`` of one of its tables."""

    format: FileFormat = option(FileFormat.PARQUET, "How the files are written.")
    columns: Passthrough = option(Passthrough(), "The Arrow type of the column, such as timestamp[us, UTC].")
    infer: bool = option(False, "Take the columns of JSON or CSV from the first file, once, where none are given.")
    infer_files: int = option(
        1,
        "From so many files the columns are taken, once, where none are given: the first, or several, evenly spread by "
        "name; 0: all.",
        least=0,
    )
    extra_columns: ExtraColumns = option(ExtraColumns.FAIL, "What becomes of columns that only the file has.")
    order: Order = option(Order.TIME, "Files that are found together: by their time and name, or by name alone.")
    min_age: float = option(0.0, "Leave files alone that changed less than so many seconds ago.", least=0)
    on_rewritten: OnRewritten = option(
        OnRewritten.FAIL, "Whether a file that changed after it was taken stops the table when it is noticed."
    )
    split_bytes: int = option(128 * 1024 * 1024, "Parquet files are read in parts of about this size.", least=1)
    delimiter: str = option(",", "Between the values of CSV.")
    header: bool = option(True, "Whether the first line of a CSV file names its columns.")
    max_record_bytes: int = option(RECORD_BYTES, "A line of JSON or CSV with more bytes is a bad record.", least=1)
    max_block_bytes: int = option(
        BLOCK_BYTES, "What a block of Avro or Arrow, or a page of Parquet, may expand to.", least=1
    )
    max_expansion: int = option(
        EXPANSION, "So many times its size a compressed file of text may become, above 1 GiB.", least=1
    )

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii():
            raise ConfigError(f"read.delimiter = {self.delimiter!r} is not one ASCII character", fix="Use , or ; say.")
        if self.format is FileFormat.CSV and not self.header and not self.columns:
            raise ConfigError(
                "read.header is false and no columns are given",
                fix="Give read.columns.<name> in the order of the file.",
            )
