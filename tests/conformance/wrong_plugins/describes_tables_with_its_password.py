"""A table's description has the address it was loaded from among its properties, so that a task can load it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_secret_is_stored"
SAYS = "the pickle of a table's description, which goes into the logs of engines, has the secret"


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: spi.Secret | None = spi.option(None, "Their password.")


@dataclass(frozen=True)
class ConnectedCatalog(kit.ManifestCatalog):
    options: Options = Options()

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        password = "" if self.options.password is None else self.options.password.reveal()
        address = f"https://{self.options.user}:{password}@catalog/{path}"
        descriptor = replace(info.descriptor, properties={**info.descriptor.properties, "loaded.from": address})
        return replace(info, descriptor=descriptor)


@dataclass(frozen=True)
class ConnectedStorage(CrookedStorage):
    options: Options = Options()

    def catalog(self) -> kit.ManifestCatalog:
        return ConnectedCatalog(self.parts.table, self.warehouse, options=self.options)


class ConnectedPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return ConnectedStorage(Path(config.warehouse), self._parts, config.options)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ConnectedPlugin("describes-tables-with-its-password")
