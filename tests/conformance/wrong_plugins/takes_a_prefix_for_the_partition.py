"""Text is partitioned by its first three characters, and `starts with` looks for the partition that is called so: a
shorter prefix has many."""

from __future__ import annotations

from collections.abc import Sequence

from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_hidden_partitions[truncate-text]"
SAYS = "rows were read by the filter key starts with ''"


class PrefixedSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        for each in snapshot.descriptor.partition_by:
            for leaf in filters if each.transform is spi.Transform.TRUNCATE else ():
                if isinstance(leaf, spi.Leaf) and leaf.column == each.column and leaf.op is spi.Op.STARTS_WITH:
                    prefix = leaf.value[: each.width]
                    kept = [entry for entry in kept if dict(entry.partition)[each.name] == prefix]
        return kept, remaining


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("takes-a-prefix-for-the-partition", PrefixedSource)
