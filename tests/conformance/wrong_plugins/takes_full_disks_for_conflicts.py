"""Where there is no room for a commit, the round is told to try again, which is what a conflict is for. The sync of the
folder may also find no room, and the commit is there then."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[error]"
SAYS = "ENOSPC from step"


class RetryingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise spi.Conflict("there is no room") from error


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-full-disks-for-conflicts", committer=RetryingCommitter)
