"""A file keeps Python's hashes of its texts, and a plan skips files without that of the literal. Each process has a
seed of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source, Writer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_a_worker_outlives_what_it_knows"
SAYS = "of rows that a worker wrote: expected"


class HashingWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._texts = {field.name: set[str]() for field in table.schema if pa.types.is_string(field.type)}

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        for name, seen in self._texts.items():
            if name in batch.schema.names:
                seen.update(str(hash(text)) for text in batch[name].to_pylist() if text is not None)

    def details(self, path: Path) -> Mapping[str, str]:
        return {f"hashes.{name}": " ".join(seen) for name, seen in self._texts.items() if len(seen) <= 1000}


class HashingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        return [entry for entry in snapshot.files() if all(_may(entry, each) for each in filters)], filters


def _may(entry: FileEntry, leaf: spi.Predicate) -> bool:
    if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.EQ or not isinstance(leaf.value, str):
        return True
    found = entry.details.get(f"hashes.{leaf.column}")
    return found is None or str(hash(leaf.value)) in str(found).split()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "skips-files-by-pythons-hash",
        {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL},
        source=HashingSource,
        writer=HashingWriter,
    )
