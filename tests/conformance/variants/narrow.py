"""A format whose tables have 500 columns at most, as a row of a database that has to fit a page, and 8 of partitions.
Its floating point is that of 64 bits."""

from __future__ import annotations

import pyarrow as pa
from richer import richer

from laketier import kit, spi
from laketier.registry import hookimpl


class NarrowCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if len(descriptor.schema) > 500:
            raise spi.UnsupportedType("a table has 500 columns at most", where=str(path), fix="Write fewer.")
        if len(descriptor.partition_by) > 8:
            raise spi.FeatureNotSupported("more than 8 columns of partitions", reason="a row has to fit a page")
        if pa.float32() in descriptor.schema.types:
            raise spi.UnsupportedType("floats have 64 bits", where=str(path), fix="Cast the column to double.")
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("narrow", catalog=NarrowCatalog)
