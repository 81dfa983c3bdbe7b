"""Names of databases have no case in the author's database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_list"
SAYS = "the tables of the warehouse"


class FoldingCatalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> Any:
        return super().store(replace(path, database=path.database.lower()))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("folds-names-of-databases", catalog=FoldingCatalog)
