"""Columns to leave alone are a set, as the library below takes them. Options are texts, and no text is a set."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_options_have_defaults_and_docs"
SAYS = "the option left_alone is frozenset[str], and no text of a user can be one"


@dataclass(frozen=True)
class Options:
    left_alone: frozenset[str] = spi.option(frozenset(), "Columns that are written as they are.")


class SetPlugin(CrookedPlugin):
    options_type = Options


@hookimpl
def laketier_format() -> CrookedPlugin:
    return SetPlugin("has-an-option-that-no-text-sets")
