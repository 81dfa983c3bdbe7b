"""A discard deletes whatever a result names, wherever that is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_deletes_nothing_elsewhere"
SAYS = "files that changed when a forged result was discarded, of the path"


class ObedientCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        for file in (file for result in results for file in result.files):
            with suppress(OSError, ValueError):
                Path(self.table.location, file.path).unlink()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-elsewhere", committer=ObedientCommitter)
