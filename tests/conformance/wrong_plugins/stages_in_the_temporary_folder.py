"""A file is written to the folder for temporary files, and moved into the table when it is whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_temporary_files_are_on_another_device"
SAYS = "on another device, and a round fails"


class MovingWriter(Writer):
    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        self._elsewhere = Path(tempfile.gettempdir()) / path.name
        return super().new_file(self._elsewhere, schema)

    def complete(self) -> spi.WriteResult:
        if self._file is not None:
            self._file.close()
            os.rename(self._elsewhere, self._path)
        return super().complete()

    def abort(self) -> None:
        if self._file is not None:
            self._elsewhere.unlink(missing_ok=True)
        super().abort()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("stages-in-the-temporary-folder", writer=MovingWriter)
