"""A commit is prepared in a temporary folder, which is deleted when it has landed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "files in the folder for temporary ones after 5 more rounds, lost races"


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        notes = tempfile.mkdtemp()
        done = super().publish(state, results, watermark)
        shutil.rmtree(notes)
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("leaves-notes-of-lost-races", committer=NotingCommitter)
