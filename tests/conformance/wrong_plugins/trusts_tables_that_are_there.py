"""Whoever creates a table that is there has nothing to do. Its maker was killed before it synced the name."""

from __future__ import annotations

from feather_lake.plugin import FeatherPlugin
from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_a_creation_makes_durable_what_it_finds"
SAYS = "and asked for again; a power cut after 'make' was answered"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(
        FeatherPlugin, "trusts-tables-that-are-there", catalog="laketier.kit.manifests.log.ManifestLog.sync_names"
    )
