"""A commit of Lance returned, so the version is taken for stored."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.plugin import LancePlugin

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "no sync made durable the bytes of warehouse/db/t.lance/_versions/"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(LancePlugin, "forgets-versions-of-lance", committer="laketier_lance.committer.make_durable")
