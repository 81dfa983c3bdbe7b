"""Names of tables have no case in the author's database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "the tables of database 'db' alone are listed"


class FoldingCatalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> Any:
        return super().store(replace(path, table=path.table.lower()))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("folds-names-of-tables", catalog=FoldingCatalog)
