"""Who follows a table is told the oldest version as its identity: once that expires, it is another table."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_an_expired_range_is_refused"
SAYS = "the identity by which a log knows a table, after old versions expired"


class Harness:
    forgotten: ClassVar[dict[str, int]] = {}
    """By table: the first version that is left."""

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        self.forgotten[table.location] = storage.changes(table).versions().latest - 1


class NamedChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        earliest = Harness.forgotten.get(str(self.source.table.location), 0)
        return replace(super().versions(), earliest=earliest, lasting_id=f"since {earliest}")


class NamingStorage(CrookedStorage):
    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return NamedChanges(self.source(table))


class NamingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return NamingStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return NamingPlugin("knows-tables-by-their-oldest-version")
