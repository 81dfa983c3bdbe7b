"""The local-file format with so little patience for small files that nearly each commit folds some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from laketier.registry import hookimpl
from laketier.spi import LakeStoragePlugin, option
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin


@dataclass(frozen=True)
class FoldingOptions(LocalFileOptions):
    """The same with another default."""

    fold_files: int = option(2, "As of the format.", least=0)


class FoldingPlugin(LocalFilePlugin):
    """The format under another name."""

    identifier: ClassVar[str] = "folding"
    options_type: ClassVar[type] = FoldingOptions


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    return FoldingPlugin()
