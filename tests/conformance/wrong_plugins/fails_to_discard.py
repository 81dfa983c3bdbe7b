"""A discard raises what the disk says, and so hides why the round ended."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[discard]"
SAYS = "a failure is logged, and not raised"


class RaisingCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        if not self.table.location.exists():
            return
        state = self.open()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        for result in results:
            for file in result.files:
                if file.path not in live:
                    (self.table.location / file.path).unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("fails-to-discard", committer=RaisingCommitter)
