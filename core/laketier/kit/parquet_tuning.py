"""What else pyarrow's Parquet writer can be told, as options. What would change a value, or what its readers get, is
none of them: INT96 times, coarser times, no Arrow schema, no statistics."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.kit.parquet import ParquetSettings
from laketier.spi.errors import ConfigError
from laketier.spi.options import option

_ENCODINGS = ("PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")


class Dictionary(enum.Enum):
    """The columns that are written with a dictionary first."""

    AUTO = "auto"
    ALL = "all"
    NONE = "none"


class PageVersion(enum.Enum):
    """Versions of data pages."""

    V1 = "1.0"
    V2 = "2.0"


@dataclass(frozen=True)
class ParquetTuning(ParquetSettings):
    """`ParquetSettings` and all the rest. Columns are listed with commas."""

    parquet_sort_by: str | None = option(
        None,
        "Parquet: columns by which the rows of each row group are sorted, such as id, at desc; the footer says so.",
    )
    parquet_dictionary: Dictionary = option(
        Dictionary.AUTO, "Parquet: columns with a dictionary: auto (text and what is nested), all or none."
    )
    parquet_dictionary_bytes: int | None = option(
        None, "Parquet: a larger dictionary of a column chunk is given up; 1 MiB when unset.", least=1
    )
    parquet_encodings: str | None = option(
        None,
        "Parquet: encodings of columns, such as amount=BYTE_STREAM_SPLIT, instead of those that laketier chooses. Not "
        "every reader has each.",
    )
    parquet_bloom_filters: str | None = option(None, "Parquet: columns with a bloom filter in each row group.")
    parquet_bloom_distinct: int | None = option(
        None, "Parquet: distinct values that a bloom filter is made for; 1,048,576 when unset.", least=1
    )
    parquet_bloom_false_positives: float = option(
        0.05, "Parquet: the share of false positives of bloom filters, between 0 and 1."
    )
    parquet_page_bytes: int | None = option(None, "Parquet: bytes per data page, about; 1 MiB when unset.", least=1)
    parquet_page_rows: int | None = option(None, "Parquet: rows per data page, at most; 20,000 when unset.", least=1)
    parquet_page_batch_rows: int | None = option(
        None, "Parquet: values that are written before the size of a page is looked at; 1024 when unset.", least=1
    )
    parquet_page_version: PageVersion = option(PageVersion.V1, "Parquet: the version of data pages, 1.0 or 2.0.")
    parquet_page_index: bool = option(False, "Parquet: bounds of each page in the footer, by which readers skip pages.")
    parquet_page_checksums: bool = option(False, "Parquet: a checksum in each page; reading looks at those there are.")
    parquet_decimals_as_integers: bool = option(
        True, "Parquet: decimals of up to 18 digits as integers, which are smaller."
    )
    parquet_content_chunks: bool = option(
        False, "Parquet: pages end where the content says so, for storage that keeps equal parts once (experimental)."
    )

    def __post_init__(self) -> None:
        share = self.parquet_bloom_false_positives
        if not 0 < share < 1:
            raise ValueError(f"parquet-bloom-false-positives is {share}, and it is a share between 0 and 1")
        for name, encoding in self._pairs():
            if encoding not in _ENCODINGS:
                raise ValueError(f"parquet-encodings has {name}={encoding}, and encodings are {', '.join(_ENCODINGS)}")

    def arguments(self, schema: pa.Schema) -> dict[str, Any]:
        chosen = super().arguments(schema)
        if self.parquet_dictionary is not Dictionary.AUTO:
            chosen["use_dictionary"] = self.parquet_dictionary is Dictionary.ALL
            if self.parquet_dictionary is Dictionary.ALL:
                chosen["column_encoding"] = None
        encodings = dict(self._pairs())
        if encodings:
            _refuse_unknown(list(encodings), schema, "parquet-encodings")
            if isinstance(chosen["use_dictionary"], list):
                chosen["use_dictionary"] = [c for c in chosen["use_dictionary"] if c not in encodings] or False
            elif chosen["use_dictionary"]:
                chosen["use_dictionary"] = [c for c in schema.names if c not in encodings] or False
            chosen["column_encoding"] = {**(chosen["column_encoding"] or {}), **encodings}
        blooms = _listed(self.parquet_bloom_filters)
        if blooms:
            _refuse_unknown(blooms, schema, "parquet-bloom-filters")
            bloom = {"fpp": self.parquet_bloom_false_positives, "ndv": self.parquet_bloom_distinct or 1 << 20}
            chosen["bloom_filter_options"] = dict.fromkeys(blooms, bloom)
        chosen["store_decimal_as_integer"] = self.parquet_decimals_as_integers
        return {
            **chosen,
            "sorting_columns": self._sorting(schema) or None,
            "dictionary_pagesize_limit": self.parquet_dictionary_bytes,
            "data_page_size": self.parquet_page_bytes,
            "max_rows_per_page": self.parquet_page_rows,
            "write_batch_size": self.parquet_page_batch_rows,
            "data_page_version": self.parquet_page_version.value,
            "write_page_index": self.parquet_page_index,
            "write_page_checksum": self.parquet_page_checksums,
            "use_content_defined_chunking": self.parquet_content_chunks,
        }

    def arranged(self, table: pa.Table) -> pa.Table:
        keys = self._keys()
        return table.sort_by([(name, "descending" if down else "ascending") for name, down in keys]) if keys else table

    def _sorting(self, schema: pa.Schema) -> list[Any]:
        import pyarrow.parquet as pq

        keys = self._keys()
        _refuse_unknown([name for name, _ in keys], schema, "parquet-sort-by")
        return pq.SortingColumn.from_ordering(
            schema, [(name, "descending" if down else "ascending") for name, down in keys], null_placement="at_end"
        )

    def _keys(self) -> list[tuple[str, bool]]:
        return [(name.removesuffix(" desc").strip(), name.endswith(" desc")) for name in _listed(self.parquet_sort_by)]

    def _pairs(self) -> list[tuple[str, str]]:
        parts = (pair.rpartition("=") for pair in _listed(self.parquet_encodings))
        return [(name.strip(), encoding.strip().upper()) for name, _, encoding in parts]


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _refuse_unknown(names: list[str], schema: pa.Schema, option_name: str) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise ConfigError(
            f"{option_name} names {', '.join(map(repr, unknown))}, which the table does not have",
            why=f"its columns are {', '.join(schema.names)}",
            fix="Write a column's name as the table has it.",
        )
