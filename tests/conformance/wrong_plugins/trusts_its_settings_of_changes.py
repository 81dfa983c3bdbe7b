"""A table keeps as JSON how many commits one plan of changes may have. A value of another kind is not refused."""

from __future__ import annotations

import json
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_value_is_another"
SAYS = "and its changes are read: no error of laketier's, but TypeError"
FILE = "changes.json"


class SettledCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        file = Path(info.location, FILE)
        if not file.exists():
            file.write_text(json.dumps({"commits": 1000}))
        return info


class SettledChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        file = Path(self.source.table.location, FILE)
        try:
            most = json.loads(file.read_bytes())["commits"]
        except (ValueError, KeyError, RecursionError) as error:
            raise spi.CorruptTable("the settings can't be read", where=str(file), why=repr(error)) from error
        if end > start + most:
            raise spi.ConfigError(f"more than {most} commits are asked for at once")
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-its-settings-of-changes", catalog=SettledCatalog, changes=SettledChanges)
