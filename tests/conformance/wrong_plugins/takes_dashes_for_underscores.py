"""Names of tables are identifiers of SQL, so a dash becomes an underscore."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_names_that_are_alike_when_joined_stay_apart"
SAYS = "rows of a.b-c, beside tables of names that are alike when joined"


class IdentifierCatalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> Any:
        return super().store(replace(path, table=path.table.replace("-", "_")))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-dashes-for-underscores", catalog=IdentifierCatalog)
