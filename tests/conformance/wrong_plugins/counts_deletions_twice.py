"""A split tells the rows of its file, less those that each deletion found in it, also those that were gone already."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from sequenced import CompactingHarness, SequencedSource

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_rows_come_again_after_others_deleted_them"
SAYS = "a split has 8 rows, and tells 7, after others deleted a row that had come again"
COUNTS = "counts.json"


def counts(location: Path | str) -> dict[str, int]:
    listed = Path(location) / COUNTS
    found: dict[str, int] = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    return found


class Harness(CompactingHarness):
    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        found = counts(table.location)
        for split in storage.source(table).plan(spi.ScanRequest()).splits:
            path = split.payload.path
            with pa.ipc.open_file(str(Path(table.location) / path)) as file:
                there = file.read_all()["id"].to_pylist()
            found[path] = found.get(path, 0) + len([each for each in there if each in ids])
        (Path(table.location) / COUNTS).write_text(json.dumps(found), encoding="utf-8")
        super().delete_rows(storage, table, ids)


class CountingSource(SequencedSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        deleted = counts(self.table.location).get(entry.path, 0)
        return replace(super().split(index, entry, snapshot, wanted), rows=entry.rows - deleted)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-deletions-twice", source=CountingSource)
