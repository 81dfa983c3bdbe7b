"""Whoever publishes makes the folders and files that the commit needs, as the author's object store would: also
those of a table that somebody dropped meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.durable import make_directories
from laketier.kit.manifests.table_file import TableFile
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_table_dropped_between_open_and_publish[empty]"
SAYS = "files are published against a state from before the table was dropped: expected Exception, and no error was"


class Obliging(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        manifests = state.manifests
        make_directories(manifests.folder)
        table = TableFile(manifests.layout.format, manifests.table_uuid, manifests.manifests_per_rollup)
        (self.table.location / manifests.layout.table_file).write_bytes(table.encode())
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("brings-dropped-tables-back", committer=Obliging)
