"""One list has the ids of the commits of all tables, and a drop empties it: whether a batch of another table landed is
told wrongly then, and it is written a second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_drop_leaves_tables_of_similar_names"
SAYS = "tells whether its commit landed"
LIST = ".commits"


@dataclass(frozen=True)
class ListedState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        listed = self.manifests.store.folder
        assert listed is not None
        file = listed.parents[1] / LIST
        return file.exists() and commit_id in file.read_text(encoding="utf-8").split()


def _listed(state: kit.ManifestState) -> kit.ManifestState:
    return ListedState(state.manifests, state.head, state.metadata)


class ListedTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return _listed(super().open())

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return _listed(super().state(info))


class ListingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        made = super().publish(state, results, watermark)
        with (self.table.location.parents[1] / LIST).open("a", encoding="utf-8") as file:
            file.write(f"{self.context.commit_id}\n")
        return made


class EmptyingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        file = self.location(path).parents[1] / LIST
        super().drop_table(path)
        file.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "drops-the-commits-of-all-tables", table=ListedTable, committer=ListingCommitter, catalog=EmptyingCatalog
    )
