"""Columns that are added are collected by their names. Of two with one name the last counts."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_that_does_not_fit_is_refused[other-type]"
SAYS = "a column is added twice in one step, by two types: expected IncompatibleTable, and no error was raised"


class NamedCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        by_name = {change.field.name: change for change in changes if isinstance(change, spi.AddColumn)}
        return super().alter_table(path, list(by_name.values()) or changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("adds-what-was-named-last", catalog=NamedCatalog)
