"""An index whose files are gone is not dropped, as they are looked at first."""

from __future__ import annotations

from pathlib import Path

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.dataset import indexes_of
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_an_index_whose_files_are_gone[dropped]"
SAYS = "an index whose files are gone, and that is dropped"


class Indexer(LanceIndexer):
    def drop(self, name: str) -> None:
        for each in indexes_of(self._open()):
            for segment in each.segments if each.name == name else ():
                if not any(Path(self._location, "_indices", segment.uuid).iterdir()):
                    raise spi.CorruptTable(f"index {name} can't be read", where=self._location)
        super().drop(name)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("drops-what-it-can-read", indexer=Indexer)
