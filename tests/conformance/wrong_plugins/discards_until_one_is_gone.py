"""A missing file is fine for a discard, so the error is passed over, and with it the files after that one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.staged import discard_staged
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_the_files_are_gone"
SAYS = "files after staged results were discarded, the second of which was gone before"


class Stopping(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=self.table.layout.attempt_of,
            where=str(self.table.location),
            published=self._published,
            delete=self._delete,
        )

    def _delete(self, paths: Sequence[str]) -> None:
        with suppress(FileNotFoundError):
            for path in paths:
                (self.table.location / path).unlink()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-until-one-is-gone", committer=Stopping)
