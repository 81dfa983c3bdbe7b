"""A table's description has the address it was loaded from among its properties, so that a task can load it again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from connected import NOBODY, ConnectedPlugin, ConnectedStorage, Options

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_secret_is_stored"
SAYS = "the pickle of a table's description, which goes into the logs of engines, has the secret"


@dataclass(frozen=True)
class DescribingCatalog(kit.ManifestCatalog):
    options: Options = NOBODY

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        address = f"https://{self.options.login}@catalog/{path}"
        descriptor = replace(info.descriptor, properties={**info.descriptor.properties, "loaded.from": address})
        return replace(info, descriptor=descriptor)


@dataclass(frozen=True)
class DescribingStorage(ConnectedStorage):
    def catalog(self) -> kit.ManifestCatalog:
        return DescribingCatalog(self.parts.table, self.warehouse, options=self.options)


class DescribingPlugin(ConnectedPlugin):
    storage = DescribingStorage


@hookimpl
def laketier_format() -> ConnectedPlugin:
    return DescribingPlugin("describes-tables-with-its-password")
