"""The bucket of a key is looked up by the literal of a filter, which has eight bytes: the column has four, and its rows
lie in another bucket."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.bucketing import assigner_for
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_keys_of_buckets[int]"
SAYS = "rows were read by the filter key = "


class HashingSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        buckets = snapshot.descriptor.buckets
        for leaf in filters:
            if buckets and isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ and buckets.keys == (leaf.column,):
                literal = pa.record_batch({leaf.column: pa.array([leaf.value])})
                descriptor = spi.TableDescriptor(literal.schema, buckets=buckets)
                bucket = assigner_for(descriptor).assign(literal)[0].as_py()
                kept = [entry for entry in kept if entry.bucket == bucket]
        return kept, remaining


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("hashes-literals-as-python-has-them", HashingSource)
