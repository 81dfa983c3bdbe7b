"""Its options are a dataclass that is not frozen, so one warehouse can change what another one is opened with."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_options_have_defaults_and_docs"
SAYS = "the dataclass Options is frozen: found that its fields can be set"


@dataclass
class Options:
    rows_at_once: int = spi.option(1000, "Rows that are written at once.", least=1)


class LoosePlugin(CrookedPlugin):
    options_type = Options


@hookimpl
def laketier_format() -> CrookedPlugin:
    return LoosePlugin("lets-its-options-be-changed")
