"""Iceberg with a local warehouse, and its catalog behind the REST servlet of Apache Iceberg."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import requests

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse
from laketier_iceberg.plugin import IcebergPlugin


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        server = f"http://127.0.0.1:{os.environ['ICEBERG_REST_PORT']}"
        made = requests.get(f"{server}/new", params={"folder": str(folder)}, timeout=60)
        made.raise_for_status()
        return Warehouse(str(folder / "warehouse"), {"catalog.type": "rest", "catalog.uri": server + made.text})


class IcebergOnApachesRest(IcebergPlugin):
    identifier: ClassVar[str] = "iceberg-on-apaches-rest"


@hookimpl
def laketier_format() -> IcebergOnApachesRest:
    return IcebergOnApachesRest()
