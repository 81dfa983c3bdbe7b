"""The format ducklake: tables of DuckLake, committed by its own library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ducklake_lake.features import FEATURES
from laketier import kit, spi
from laketier.registry import hookimpl

if TYPE_CHECKING:
    from ducklake_lake.catalog import Catalog
    from ducklake_lake.library import Lake
    from ducklake_lake.rounds import Factory, State
    from ducklake_lake.source import Source


@dataclass(frozen=True)
class Storage(spi.LakeStorage):
    """One folder. Its modules import the library, so they are imported when they are used."""

    folder: Path

    def catalog(self) -> Catalog:
        from ducklake_lake.catalog import Catalog

        return Catalog(self._lake)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        from ducklake_lake.rounds import Factory

        return Factory(table.with_handle(None), self._lake)

    def source(self, table: spi.TableInfo) -> Source:
        from ducklake_lake.source import Source

        return Source(table.with_handle(None), self._lake)

    def state(self, table: spi.TableInfo) -> State:
        from ducklake_lake.rounds import read_state

        return read_state(table, self._lake)

    @property
    def _lake(self) -> Lake:
        from ducklake_lake.library import Lake

        return Lake(self.folder)


class DucklakePlugin(spi.LakeStoragePlugin):
    """The format."""

    identifier, spi_version, features = "ducklake", 3, FEATURES
    delivery = spi.DeliveryLevel.EXACTLY_ONCE

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return Storage(kit.warehouse_folder(config.warehouse, format="ducklake", features=FEATURES))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    """The hook."""
    return DucklakePlugin()
