"""`key != 'b'` skips the partition of the bucket in which 'b' lies, as a partition by the column itself is skipped: the
bucket has other keys too."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_hidden_partitions[bucket-text]"
SAYS = "rows were read by the filter key != 'b'"


class SkippingSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        partitioning = Partitioning.of(snapshot.descriptor)
        for each in snapshot.descriptor.partition_by:
            for leaf in filters if each.transform is spi.Transform.BUCKET else ():
                if isinstance(leaf, spi.Leaf) and leaf.column == each.column and leaf.op is spi.Op.NE:
                    literal = pa.array([leaf.value], snapshot.schema.field(each.column).type)
                    (bucket,) = partitioning.texts_of(each, literal)
                    kept = [entry for entry in kept if dict(entry.partition)[each.name] != bucket]
        return kept, remaining


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("skips-the-bucket-of-what-differs", SkippingSource)
