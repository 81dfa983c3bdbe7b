"""A catalog keeps the tables that it loaded, until they change by its own hand or are gone. Others change them, too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_add_a_column"
SAYS = "the schema that a catalog loads after others changed it"


class RememberingCatalog(kit.ManifestCatalog):
    @cached_property
    def _known(self) -> dict[spi.TablePath, spi.TableInfo]:
        return {}

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        if path not in self._known or not self.location(path).exists():
            self._known[path] = super().load_table(path)
        return self._known[path]

    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        super().alter_table(path, changes)
        self._known.pop(path, None)
        return self.load_table(path)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("caches-tables-that-are-there", catalog=RememberingCatalog)
