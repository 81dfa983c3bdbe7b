"""The identity of a table changes with its schema: it is that of the document that describes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[plain]"
SAYS = "the identity of a table after add-column, for who changed it"


def told_id(uuid: str, number: int) -> str:
    return f"{uuid}-{number}"


class TellingState(kit.ManifestState):
    @property
    def table_uuid(self) -> str:
        return told_id(super().table_uuid, self.head.metadata_at)


class TellingCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        head, _ = self.table_type(Path(info.location)).manifests().current()
        return replace(info, table_uuid=told_id(info.table_uuid, head.metadata_at)).with_handle(info.handle)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("gives-altered-tables-another-identity", catalog=TellingCatalog, **told(TellingState))
