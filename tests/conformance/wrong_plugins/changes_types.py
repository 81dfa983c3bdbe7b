"""Small integers are widened when the table is created, without a word."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[int8]"
SAYS = "int8 silently became int64: refuse it with UnsupportedType"


class WideningCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        wide = [f.with_type(pa.int64()) if pa.types.is_integer(f.type) else f for f in descriptor.schema]
        return super().create_table(path, replace(descriptor, schema=pa.schema(wide)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("changes-types", catalog=WideningCatalog)
