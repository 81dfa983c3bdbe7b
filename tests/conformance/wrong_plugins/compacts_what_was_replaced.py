"""A compaction that lost its race takes away those of its files that are still there, and adds its own. Rows of the
others were replaced meanwhile, and come back beside what replaced them."""

from __future__ import annotations

from compacting import merged
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_maintenance_races.py::test_work_of_others_comes_upon_maintenance[compact]"
SAYS = "an overwrite by another process came before step"


class Adding(kit.ManifestCommitter):
    def replace(self, before: kit.ManifestState, result: spi.WriteResult) -> None:
        state = self.open()
        live = {file.path for file in files_at(state.manifests, state.head.number)}
        merged = {file.path for file in files_at(before.manifests, before.head.number)}
        manifest = next_manifest(
            state.head,
            commit_id=self.context.commit_id,
            kind="append",
            added=tuple(self._named(state.head.number + 1, [self._entry(state, file, "") for file in result.files])),
            removed=tuple(sorted(live & merged)),
        )
        self.table.finish(state.manifests, state.manifests.append(manifest))


class Harness:
    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        own = FeatherTable(storage.source(table).table.location)  # type: ignore[attr-defined]
        before, result = own.open(), merged(storage, table)
        Adding(own, spi.CommitterInitContext(spi.new_attempt_id())).replace(before, result)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-what-was-replaced")
