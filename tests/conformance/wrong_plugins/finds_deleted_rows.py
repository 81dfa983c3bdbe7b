"""It asks the version in which the files were written, whatever was deleted of them since."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_deleted_rows_are_not_found"
SAYS = "after others deleted some"


class Snapshot(LanceSearchSnapshot):
    def __init__(self, dataset: Any, name: str) -> None:
        files = _files(dataset)
        while dataset.version > 1 and _files(older := dataset.checkout_version(dataset.version - 1)) == files:
            dataset = older
        super().__init__(dataset, name)


def _files(dataset: Any) -> tuple[list[int], int]:
    return [fragment.fragment_id for fragment in dataset.get_fragments()], len(dataset.describe_indices())


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("finds-deleted-rows", searcher=Searcher)
