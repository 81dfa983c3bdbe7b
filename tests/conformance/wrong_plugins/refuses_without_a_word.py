"""A choice that is not built yet is refused, and whoever wrote it is not told which of his keys it was."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from crooked import CrookedStorage
from optioned import OptionedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_rows_are_the_same_under_each_option"
SAYS = "the refusal of codec helps who wrote it: it does not name codec"


class Codec(Enum):
    NONE = "none"
    BROTLI = "brotli"


@dataclass(frozen=True)
class Options:
    codec: Codec = spi.option(Codec.NONE, "How files are compressed.")


class RefusingPlugin(OptionedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        if config.options.codec is not Codec.NONE:
            raise spi.ConfigError("it is not supported yet", fix="Use something else.")
        return super().create_storage(config)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return RefusingPlugin("refuses-without-a-word")
