"""From staged files to the entries of a manifest. Driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from laketier.kit import confined
from laketier.spi import WriteResult
from laketier_iceberg.metrics import FileMetrics
from laketier_iceberg.partitions import from_json

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table


def data_files(table: Table, results: Iterable[WriteResult], base: str) -> list[DataFile]:
    """`DataFile`s for the table's current spec. The core has compared it with the results' own. ``base``: what their
    paths, which are confined to it, are relative to."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    spec = table.spec()
    types = [field.field_type for field in spec.partition_type(table.schema()).fields]
    made = []
    for result in results:
        for staged in result.files:
            metrics = FileMetrics.from_json(staged.payload["metrics"])
            columns = sorted(metrics.columns.items())
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{base}/{confined(staged.path, where=base)}",
                file_format=FileFormat.PARQUET,
                partition=Record(*from_json(staged.payload["partition"], types)),
                record_count=staged.rows,
                file_size_in_bytes=staged.bytes,
                column_sizes={i: m.size for i, m in columns},
                value_counts={i: m.values for i, m in columns if m.values is not None},
                null_value_counts={i: m.nulls for i, m in columns if m.nulls is not None},
                nan_value_counts={i: m.nans for i, m in columns if m.nans is not None},
                lower_bounds={i: m.lower for i, m in columns if m.lower is not None},
                upper_bounds={i: m.upper for i, m in columns if m.upper is not None},
                split_offsets=list(metrics.split_offsets),
            )
            # `from_args` drops it silently, and the manifest takes the current default.
            file.spec_id = spec.spec_id
            made.append(file)
    return made
