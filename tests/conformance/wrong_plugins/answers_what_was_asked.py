"""A table that is there has the schema that was asked for, so it is returned with the rest of what was asked for."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_create_is_idempotent"
SAYS = "what create_table returns for a table that is there: the table, not what was asked for"


class Answering(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        found = super().create_table(path, descriptor)
        return replace(found, descriptor=replace(descriptor, schema=found.schema))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("answers-what-was-asked", catalog=Answering)
