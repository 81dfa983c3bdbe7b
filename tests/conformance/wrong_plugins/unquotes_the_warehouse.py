"""The warehouse is taken for a URL, and its percent signs for escapes."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_warehouse_in_a_folder_with_an_odd_name[percent]"
SAYS = "and no file of it is there"


class UnquotingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        return super().create_storage(replace(config, warehouse=unquote(config.warehouse)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return UnquotingPlugin("unquotes-the-warehouse")
