"""Formats that do something more whenever one of their parts works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source, Writer

from laketier import kit, spi

Act = Callable[[], object]


def when_writing(act: Act) -> type[Writer]:
    class Acting(Writer):
        def complete(self) -> spi.WriteResult:
            act()
            return super().complete()

    return Acting


def when_publishing(act: Act) -> type[kit.ManifestCommitter]:
    class Acting(kit.ManifestCommitter):
        def publish(
            self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
        ) -> spi.LakeCommitResult:
            act()
            return super().publish(state, results, watermark)

    return Acting


def when_creating(act: Act) -> type[kit.ManifestCatalog]:
    class Acting(kit.ManifestCatalog):
        def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
            act()
            return super().create_table(path, descriptor)

    return Acting


def when_reading(act: Act) -> type[Source]:
    class Acting(Source):
        def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
            act()
            yield from super().read(split, schema)

    return Acting


def when_opened(identifier: str, act: Act) -> CrookedPlugin:
    class Acting(CrookedPlugin):
        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            act()
            return super().create_storage(config)

    return Acting(identifier)
