"""Whoever adds a column that is there has nothing to do. Who made it was killed before the schema was synced."""

from __future__ import annotations

from feather_lake.plugin import FeatherPlugin
from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_a_change_that_is_found_is_made_durable[new-column]"
SAYS = "and asked for again; a power cut after 'alter' was answered"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(
        FeatherPlugin, "trusts-columns-that-are-there", catalog="laketier.kit.manifests.log.ManifestLog.sync_names"
    )
