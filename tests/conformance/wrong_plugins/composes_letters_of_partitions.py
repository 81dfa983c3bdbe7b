"""Keys of some stores are normalised, so the text of a partition is, too: of two spellings of a letter one is left."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions[string]"
SAYS = "the partition that a split tells is that of its rows"


class ComposingWriter(RicherWriter):
    def complete(self) -> spi.WriteResult:
        result = super().complete()
        files = [replace(each, partition=tuple(map(composed, each.partition))) for each in result.files]
        return replace(result, files=tuple(files))


def composed(field: tuple[str, str | None]) -> tuple[str, str | None]:
    name, value = field
    return name, value and unicodedata.normalize("NFC", value)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("composes-letters-of-partitions", writer=ComposingWriter)
