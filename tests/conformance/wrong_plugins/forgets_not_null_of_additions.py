"""An added column is kept by its name and type. What is not null inside of a type is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from forgets_inner_not_nulls import nullable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_not_null_inside_of_a_type"
SAYS = "whether nulls may be inside of more_"


class PlainCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        plain = [
            replace(each, field=pa.field(each.field.name, nullable(each.field.type)))
            if isinstance(each, spi.AddColumn)
            else each
            for each in changes
        ]
        return super().alter_table(path, plain)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-not-null-of-additions", catalog=PlainCatalog)
