"""A change is made, and then its feature is looked up: who asked is told that nothing of the kind is there."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[plain]"
SAYS = "the description of a table that was refused add-column"
NONE = spi.unsupported("tables stay as they were made")


class ChangingCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        super().alter_table(path, changes)
        raise spi.FeatureNotSupported("changes", format="changes-what-it-refuses", reason=NONE.reason)


@hookimpl
def laketier_format() -> CrookedPlugin:
    changes = (spi.Feature.ADD_COLUMN, spi.Feature.WIDEN_TYPE, spi.Feature.RENAME_COLUMN, spi.Feature.SET_PROPERTY)
    features = {**FEATURES, **dict.fromkeys(changes, NONE)}
    return CrookedPlugin("changes-what-it-refuses", features, catalog=ChangingCatalog)
