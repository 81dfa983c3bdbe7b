"""Files may be anywhere, as in other formats: a path in a manifest is taken as it is, also one of another table."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import NAMES, FeatherTable

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_a_path_in_a_document_leads_elsewhere"
SAYS = ": rows: expected [0, 1, 2, 3, 4], found [70000, "


class AnywhereLayout(kit.ManifestLayout):
    def data_path(self, path: str, *, where: str, adopted: bool = False) -> str:
        return path


class AnywhereTable(FeatherTable):
    layout: ClassVar = AnywhereLayout("feather", "_feather_manifests", NAMES.attempt_of)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-any-path", table=AnywhereTable)
