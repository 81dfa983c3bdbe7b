"""An overwrite replaces the files that the table had when its factory was made. A stream makes one when it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crooked import CrookedFactory, CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.kit.manifests.rollup import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_all_rows_are_replaced"
SAYS = "rows after overwrite 1 of a stream"


def _files(state: kit.ManifestState) -> tuple[str, ...]:
    return tuple(entry.path for entry in files_at(state.manifests, state.head.number, state.head))


@dataclass(frozen=True)
class RememberingFactory(CrookedFactory):
    files: tuple[str, ...] = ()

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        return RememberingCommitter(self.parts.at(self.table), context, files=self.files)


@dataclass(frozen=True)
class RememberingCommitter(kit.ManifestCommitter):
    files: tuple[str, ...] = ()

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.context.mode is not spi.WriteMode.OVERWRITE or not isinstance(state, kit.ManifestState):
            return super().publish(state, results, watermark)
        live = {*_files(state)}
        replaced = [replace(each, replaced=()) for each in results]
        replaced[0] = replace(replaced[0], replaced=tuple(path for path in self.files if path in live))
        upsert = replace(self.context, mode=spi.WriteMode.UPSERT)
        return kit.ManifestCommitter(self.table, upsert).publish(state, replaced, watermark)


class RememberingStorage(CrookedStorage):
    def tiering_factory(self, table: spi.TableInfo) -> CrookedFactory:
        return RememberingFactory(table, self.parts, files=_files(self.state(table)))


class RememberingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> RememberingStorage:
        made = super().create_storage(config)
        return RememberingStorage(made.warehouse, made.parts)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return RememberingPlugin("overwrites-what-its-factory-saw")
