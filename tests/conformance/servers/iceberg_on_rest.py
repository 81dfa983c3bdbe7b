"""Iceberg with a local warehouse, and its catalog behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rest_catalog import new_catalog

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse
from laketier_iceberg.plugin import IcebergPlugin


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        uri = new_catalog(str(folder))
        return Warehouse(str(folder / "warehouse"), {"catalog.type": "rest", "catalog.uri": uri})


class IcebergOnRest(IcebergPlugin):
    identifier: ClassVar[str] = "iceberg-on-rest"


@hookimpl
def laketier_format() -> IcebergOnRest:
    return IcebergOnRest()
