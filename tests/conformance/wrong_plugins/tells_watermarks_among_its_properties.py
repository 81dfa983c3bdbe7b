"""Watermarks lie among a table's properties, and so they are told as such: a table that is made as another one is
described knows its epochs."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_table_made_as_another_one_is_described"
SAYS = "the rows and the watermark of a table that was made as another one is described"
PREFIX = "watermark."


class PropertyState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        stored = self.metadata.properties.get(f"{PREFIX}{pipeline}")
        found = super().watermark(pipeline)
        return spi.Watermark.from_json(stored) if found is None and stored is not None else found


class TellingCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        marks = self._open(path).current()[0].watermarks
        stored = {f"{PREFIX}{name}": mark for name, mark in marks.items()}
        described = replace(info.descriptor, properties={**info.descriptor.properties, **stored})
        return replace(info, descriptor=described).with_handle(info.handle)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-watermarks-among-its-properties", catalog=TellingCatalog, **told(PropertyState))
