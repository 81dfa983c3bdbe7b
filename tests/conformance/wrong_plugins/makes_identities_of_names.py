"""The identity of a table is made of where it is, so that each process finds the same."""

from __future__ import annotations

import uuid
from dataclasses import replace

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_drop"
SAYS = "a table that is made anew has another uuid than the dropped one"


def identity(location: object) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, str(location)).hex


class NamedState(kit.ManifestState):
    @property
    def table_uuid(self) -> str:
        return identity(self.manifests.store.root)


class NamingCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        return replace(info, table_uuid=identity(info.location)).with_handle(info.handle)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("makes-identities-of-names", catalog=NamingCatalog, **told(NamedState))
