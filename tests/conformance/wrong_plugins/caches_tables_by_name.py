"""Descriptions of tables are cached by name for as long as the warehouse is open, as a catalog was slow."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_nothing_of_a_dropped_table_is_in_the_one_that_has_its_name"
SAYS = "a table was made anew, and its columns are new for who held the warehouse"


class RememberingCatalog(kit.ManifestCatalog):
    @cached_property
    def _known(self) -> dict[spi.TablePath, spi.TableInfo]:
        return {}

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        if path not in self._known:
            self._known[path] = super().load_table(path)
        return self._known[path]


class RememberingStorage(CrookedStorage):
    @cached_property
    def _catalog(self) -> kit.ManifestCatalog:
        return super().catalog()

    def catalog(self) -> kit.ManifestCatalog:
        return self._catalog


class RememberingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> Any:
        return RememberingStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return RememberingPlugin("caches-tables-by-name", catalog=RememberingCatalog)
