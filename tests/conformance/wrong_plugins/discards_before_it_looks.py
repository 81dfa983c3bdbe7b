"""A discard first moves all files aside, so that nobody publishes them meanwhile. Those that had landed come back."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[discard]"
SAYS = "discard, killed before step"


class HastyCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        folder = self.table.location
        names = [file.path for result in results for file in result.files if (folder / file.path).exists()]
        for name in names:
            (folder / name).rename(folder / f".{name}.gone")
        if not names:
            return
        state = self.open()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        for name in names:
            if name in live:
                (folder / f".{name}.gone").rename(folder / name)
            else:
                (folder / f".{name}.gone").unlink()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-before-it-looks", committer=HastyCommitter)
