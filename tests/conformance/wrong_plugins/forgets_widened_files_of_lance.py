"""A wider type writes all files of the column anew. Their version is synced, and they are not."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.plugin import LancePlugin

CAUGHT_BY = "test_power.py::test_a_change_that_is_found_is_made_durable[wider-type]"
SAYS = "a change of columns was killed before its sync number 1 of 4, and asked for again; a power cut after"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(LancePlugin, "forgets-widened-files-of-lance", catalog="laketier_lance.durable.fsync_file")
