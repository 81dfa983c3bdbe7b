"""A vector of one number was taken for a number that somebody put in a list by mistake."""

from __future__ import annotations

import pyarrow.types as pt
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_vectors[of-one]"
SAYS = "every format has to hold fixed_size_list<item: float>[1], or to declare that it does not"


class RefusingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        for field in descriptor.schema:
            if pt.is_fixed_size_list(field.type) and field.type.list_size < 2:
                raise spi.UnsupportedType(f"column {field.name!r} is {field.type}", fix="Use its number.")
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("refuses-vectors-of-one", catalog=RefusingCatalog)
