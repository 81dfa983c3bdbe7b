"""A manifest tells when its files were written. One of another date is another file, and refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source, Writer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_dates_of_files_say_nothing"
SAYS = "whose files have other dates"


@dataclass(frozen=True)
class DatedFile:
    path: str
    date: str


class DatingWriter(Writer):
    def details(self, path: Path) -> Mapping[str, str]:
        return {"date": str(path.stat().st_mtime_ns)}


class DatedSource(Source):
    split_payload: ClassVar = DatedFile

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        split = super().split(index, entry, snapshot, wanted)
        return replace(split, payload=DatedFile(entry.path, entry.details["date"]))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        found = (Path(self.table.location) / split.payload.path).stat().st_mtime_ns
        if str(found) != split.payload.date:
            raise spi.CorruptTable("a data file is another one", where=split.payload.path)
        yield from super().read(split, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-dates-of-files", writer=DatingWriter, source=DatedSource)
