"""A column of an extension type (a UUID, JSON) becomes one of the type by which it is stored, without a word."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[uuid]"
SAYS = "silently became"


class StoringCatalog(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        schema = pa.schema(
            [
                f.with_type(f.type.storage_type) if isinstance(f.type, pa.BaseExtensionType) else f
                for f in descriptor.schema
            ]
        )
        return super()._checked(replace(descriptor, schema=schema))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-extension-types", catalog=StoringCatalog)
