"""Whether a result was published before is looked for from the second commit on that came since its writers' table was
loaded: the first one is its own, as often as not. Iceberg lists a file as often as somebody publishes it."""

from __future__ import annotations

from dataclasses import replace

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.storage import IcebergStorage, IcebergTieringFactory

CAUGHT_BY = "test_old_results.py::test_an_overwrite_took_its_rows_away"
SAYS = "of which nothing has come since, were handed over again as a batch"


class LateStorage(IcebergStorage):
    def tiering_factory(self, table: spi.TableInfo) -> IcebergTieringFactory:
        made = super().tiering_factory(table)
        return replace(made, plan=replace(made.plan, sequence=made.plan.sequence + 1))


class LatePlugin(IcebergPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        return LateStorage(config)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    plugin = LatePlugin()
    plugin.identifier = "looks-one-commit-too-late"  # type: ignore[misc]
    return plugin
