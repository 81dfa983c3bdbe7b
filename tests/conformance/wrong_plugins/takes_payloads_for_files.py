"""What the writer says to the committer of a file names the file once more, and that is what is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_what_a_result_says_of_a_file_is_of_another_one"
SAYS = "rows after a result is published whose payload is of a file that is in the table"


class TellingWriter(Writer):
    def details(self, path: Path) -> Mapping[str, str]:
        return {"file": path.name}


class TrustingTable(FeatherTable):
    def entry(self, state: kit.ManifestState, file: spi.StagedFile) -> kit.manifests.FileEntry:
        return replace(super().entry(state, file), path=file.payload["file"])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-payloads-for-files", table=TrustingTable, writer=TellingWriter)
