"""Two files with the same bytes are those of a task and of its speculative twin. Two tasks may have the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_tasks_and_epochs_of_the_same_rows"
SAYS = "rows of two epochs of two tasks each, all of which have the same rows: expected 20 rows, found 10"


class HashingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        seen: set[bytes] = set()

        def is_new(file: spi.StagedFile) -> bool:
            digest = hashlib.sha256((self.table.location / file.path).read_bytes()).digest()
            known = digest in seen
            seen.add(digest)
            return not known

        each = [replace(result, files=tuple(filter(is_new, result.files))) for result in results]
        return super().publish(state, each, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-equal-files-for-twins", committer=HashingCommitter)
