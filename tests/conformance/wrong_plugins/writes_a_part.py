"""A data file is written without a buffer, and nobody looks how many bytes a write took."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_file_system_is_odd[a-short-write]"
SAYS = "a data file is damaged, because"


class Unbuffered(Writer):
    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        # pyarrow takes what `write` returns for granted.
        self._unbuffered = open(path, "wb", buffering=0)  # noqa: SIM115 - for as long as the writer lives
        return pa.ipc.new_file(self._unbuffered, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-a-part", writer=Unbuffered)
