"""What its library says of rows that it can't index comes out of a task as it is."""

from __future__ import annotations

from dataclasses import dataclass

from overlaid import building

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder

CAUGHT_BY = "test_search.py::test_a_search_of_damaged_files"
SAYS = "words are indexed of a table whose file"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        try:
            return super().build(part)
        except spi.TableError as error:
            raise error.__cause__ or error from None


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return building("lets-errors-of-tasks-out", Builder)
