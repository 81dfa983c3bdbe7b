"""The partition of a filter's moment is its day by the zone of the column. Those of the rows are days of UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from local import reading

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_partition_values.py::test_filters_on_hidden_partitions[day-of-zoned-instant]"
SAYS = "rows were read by the filter key = datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)"


class SkippingSource(LocalFileSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        kept, remaining = super().prune(snapshot, filters)
        days = {each.column: each.name for each in snapshot.descriptor.partition_by if each.transform.value == "day"}
        for leaf in filters:
            match leaf:
                case spi.Leaf(column, spi.Op.EQ, datetime() as value) if value.tzinfo is not None and column in days:
                    day = f"{value.astimezone(ZoneInfo(snapshot.schema.field(column).type.tz)):%Y-%m-%d}"
                    kept = [entry for entry in kept if dict(entry.partition)[days[column]] == day]
        return kept, remaining


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("skips-days-of-the-zone-of-a-column", SkippingSource)
