"""A day is skipped by `at < noon of this day`, as the day is not before this day: the rows of the morning are lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_hidden_partitions[day]"
SAYS = "rows were read by the filter key <= datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)"


class SkippingSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        days = {each.column: each.name for each in snapshot.descriptor.partition_by if each.transform.value == "day"}
        for leaf in filters:
            if isinstance(leaf, spi.Leaf) and leaf.op in (spi.Op.LT, spi.Op.LE) and isinstance(leaf.value, datetime):
                name, day = days.get(leaf.column), f"{leaf.value:%Y-%m-%d}"
                kept = [entry for entry in kept if name is None or (dict(entry.partition)[name] or "") < day]
        return kept, remaining


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("skips-the-partition-of-a-bound", SkippingSource)
