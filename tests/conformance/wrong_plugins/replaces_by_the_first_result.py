"""Which files an upsert replaces is read from the first result. It was tried with one task."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import ManifestState
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_each_task_replaces_files"
SAYS = "a key is there twice"


class FirstCommitter(kit.ManifestCommitter):
    def _removed(self, state: ManifestState, results: Sequence[spi.WriteResult]) -> tuple[str, ...]:
        return super()._removed(state, results[:1])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("replaces-by-the-first-result", committer=FirstCommitter)
