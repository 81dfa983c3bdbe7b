"""A partition has a folder, so its file needs no number. Values that are alike without what a folder's name may not
have are in one folder, and the second file takes the place of the first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from foldered import FolderedWriter, foldered

from laketier import kit, spi
from laketier.kit import durable
from laketier.kit.partition import partition_text
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_values_of_one_task_stay_apart"
SAYS = "values of a partition column, each of which is taken alone, are written by one task: found"


class Numberless(FolderedWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        texts = tuple((name, partition_text(value)) for name, value in zip(names, values, strict=True))
        folders = [f"{name}={re.sub('[^0-9A-Za-z]', '_', str(text))[:200]}" for name, text in texts]
        folder = self._path.parent.joinpath(*folders)
        self.make(folder)
        path = folder / f"{self._attempt}-0.feather"
        with pa.ipc.new_file(str(path), rows.schema) as file:
            file.write_table(rows)
        durable.fsync_file(path)
        durable.fsync_directory(folder)
        where = kit.confined(str(path.relative_to(self._path.parent)), where=str(self._path.parent))
        return spi.StagedFile(where, rows.num_rows, path.stat().st_size, texts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return foldered("names-files-by-their-folders", Numberless)
