"""The folders of a new table are made by one call that makes those above them, too. Their names are synced nowhere."""

from __future__ import annotations

from pathlib import Path

from feather_lake.plugin import FeatherPlugin
from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_what_was_answered_survives"
SAYS = "'make' was answered, and no sync made durable the name warehouse: a power cut loses it: no table is there"


def make(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    made = "laketier.kit.local_store.make_directories"
    return forgetful(FeatherPlugin, "forgets-new-folders", catalog=made, instead=make)
