"""A manifest is the one that its name says, whatever it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests.description import Description
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_document_lies_in_the_place_of_another"
SAYS = "the epoch where 00000000000000000004.json holds what 00000000000000000003.json held: expected 3, found 2"

M = TypeVar("M", Manifest, Description)


class Log(ManifestLog):
    def _read(self, number: int, kind: str, build: Callable[[bytes, str], M]) -> M:
        found = build(self.store.read(self.name(number)), self.name(number))
        return replace(found, number=number, table_uuid=self.table_uuid)


class Table(FeatherTable):
    def manifests(self) -> ManifestLog:
        return Log.open(self.place, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("goes-by-names-of-manifests", table=Table)
