"""All that lies in its folder of data files is its own, and an orphan where no snapshot has it. That folder has a plain
name, and somebody keeps a copy of a file, and a note, beside the file."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_a_users_stays"
SAYS = "files of a user that are listed as orphans: expected [], found ['data/"
FOLDER = "data"


class NamesInAFolder(kit.AttemptNames):
    def name(self, attempt: str) -> str:
        return f"{FOLDER}/{super().name(attempt)}"

    def attempt_of(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        return super().attempt_of(name) if folder == FOLDER else None


NAMES = NamesInAFolder(".feather")


class TidyTable(FeatherTable):
    layout: ClassVar = replace(FeatherTable.layout, attempt_of=NAMES.attempt_of, staging=FOLDER)


class TidyWriter(Writer):
    names: ClassVar = NAMES

    def complete(self) -> spi.WriteResult:
        result = super().complete()
        return replace(result, files=tuple(replace(file, path=f"{FOLDER}/{file.path}") for file in result.files))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("collects-a-copy-beside-its-files", table=TidyTable, writer=TidyWriter)
