"""An option says after how many rows a file ends. It is checked, documented, and handed to nobody."""

from __future__ import annotations

from dataclasses import dataclass

from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_a_task_of_many_small_files_or_groups[files]"
SAYS = "a file ends about where the options of one task of 910 rows"


@dataclass(frozen=True)
class Options:
    target_file_rows: int = spi.option(1_000_000, "Rows per file, about.", least=1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("has-an-option-that-nobody-reads", Options)
