"""A table keeps the options by which it was made, to be opened by them again: the key of the store is among them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_secret_is_stored"
SAYS = "has the secret of an option in it"


@dataclass(frozen=True)
class Options:
    store: spi.Passthrough = spi.option(spi.Passthrough(), "Handed on to the store.")


class KeepingCatalog(kit.ManifestCatalog):
    options: spi.Passthrough

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        properties = {**descriptor.properties, "made.with": json.dumps(dict(self.options))}
        return super().create_table(path, replace(descriptor, properties=properties))


class KeepingStorage(CrookedStorage):
    def catalog(self) -> kit.ManifestCatalog:
        catalog = KeepingCatalog(self.parts.table, self.warehouse)
        object.__setattr__(catalog, "options", OPENED_WITH[self.warehouse])
        return catalog


OPENED_WITH: dict[Path, spi.Passthrough] = {}


class KeepingPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        OPENED_WITH[Path(config.warehouse)] = config.options.store
        return KeepingStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return KeepingPlugin("stores-its-options")
