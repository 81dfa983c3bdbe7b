"""Each look begins with CREATE TABLE IF NOT EXISTS, for which the server asks the right to make tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier.spi.options import option
from laketier_conformance.harness import Warehouse

CAUGHT_BY = "test_servers.py::test_an_account_that_may_only_read"
SAYS = "an account that may only read asks for rows. Whoever only reads makes nothing"


@dataclass(frozen=True)
class Options:
    account: str = option("writer", "The account.")


@dataclass(frozen=True)
class EagerStorage(CrookedStorage):
    account: str = "writer"

    def catalog(self) -> kit.ManifestCatalog:
        if self.account != "writer":
            raise spi.StorageError("permission denied for schema lake", where=str(self.warehouse))
        return super().catalog()


class EagerPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> EagerStorage:
        return EagerStorage(Path(config.warehouse), self._parts, config.options.account)


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        return Warehouse(str(folder / "warehouse"), {"account": "writer"})

    def for_readers(self, _: Warehouse) -> Mapping[str, str]:
        return {"account": "reader"}


@hookimpl
def laketier_format() -> CrookedPlugin:
    return EagerPlugin("makes-its-tables-at-each-look")
