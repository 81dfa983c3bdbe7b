"""An option says which files are small. It says nothing of where a writer ends one."""

from __future__ import annotations

from dataclasses import dataclass

from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl


@dataclass(frozen=True)
class Options:
    small_file_rows: int = spi.option(1_000, "Rows up to which a file is small.", least=1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("small-files", Options)
