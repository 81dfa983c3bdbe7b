"""A file is its own wherever it lies below the table's folder, if its name is one of an attempt: also one of a table in
somebody else's warehouse there, which no snapshot of this one has."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import NAMES, FeatherTable

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_a_table_within_its_folders_stays[with rows]"
SAYS = "rows of a table below one whose orphans were collected, or refused to be, are read"


def attempt_below(path: str) -> str | None:
    return NAMES.attempt_of(path.rpartition("/")[2])


class DeepTable(FeatherTable):
    layout: ClassVar = replace(FeatherTable.layout, attempt_of=attempt_below)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("knows-its-files-by-their-names-alone", table=DeepTable)
