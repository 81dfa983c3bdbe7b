"""A file of the table says from which commit on its changes are told. What is no number is an error of Python's."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_file_is_written_over"
SAYS = "and its changes are read: no error of laketier's, but ValueError"
FILE = "changes-from"


class BegunCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        file = Path(info.location, FILE)
        if not file.exists():
            file.write_text("0")
        return info


class BegunChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        first = int(Path(self.source.table.location, FILE).read_text(encoding="utf-8"))
        if start < first:
            raise spi.OffsetsExpired(f"changes are told from commit {first} on", where=FILE)
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-where-changes-begin", catalog=BegunCatalog, changes=BegunChanges)
