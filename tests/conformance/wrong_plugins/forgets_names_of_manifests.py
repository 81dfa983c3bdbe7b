"""A manifest is synced, and then gets its name. The name itself is nothing that could be synced, its author thought."""

from __future__ import annotations

from feather_lake.plugin import FeatherPlugin
from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "no sync made durable the name warehouse/db/t/_feather_manifests/"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(FeatherPlugin, "forgets-names-of-manifests", committer="laketier.kit.durable.fsync_directory")
