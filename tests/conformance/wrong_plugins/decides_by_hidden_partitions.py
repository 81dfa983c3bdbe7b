"""A filter on a column that a table is partitioned by is decided by the partitions, also where a partition is of a day
or of a bucket, and has many values: the reader has nothing left to apply, and gets rows of other values."""

from __future__ import annotations

from collections.abc import Sequence

from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_hidden_partitions[bucket-text]"
SAYS = "rows were read by the filter key = 'b'"


class DecidingSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        columns = {field.column for field in snapshot.descriptor.partition_by}
        return kept, tuple(leaf for leaf in remaining if not _is_equality(leaf, columns))


def _is_equality(leaf: spi.Predicate, columns: set[str]) -> bool:
    return isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ and leaf.column in columns


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("decides-by-hidden-partitions", DecidingSource)
