"""What a text stands for is looked up as the options are made, and a text that stands for nothing is a `KeyError`."""

from __future__ import annotations

from dataclasses import dataclass

from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_what_does_not_fit_is_refused_by_its_key"
SAYS = "expected options, or a ConfigError, found KeyError"


@dataclass(frozen=True)
class Options:
    effort: str = spi.option("low", "How hard it tries: low or high.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", {"low": 1, "high": 9}[self.effort])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("looks-up-its-options", Options)
