"""A table's folder is taken for a URL when its files are listed: where its name has a percent sign and two digits, none
is found."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_warehouse_in_a_folder_with_an_odd_name[percent]"
SAYS = "staged files of nobody that a collection left"


class DecodingMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        root = str(self.table.store.root)
        return super().orphans(modified_before) if unquote(root) == root else []


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("finds-no-orphans-behind-a-percent-sign", DecodingMaintenance)
