"""A comparison with a column that a file does not have is true for none of its rows. So its negation is thought to be
true for all of them, and the filter to be done. It is null for them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_on_a_column_that_came_later"
SAYS = "expected the ids [2, 3] (all rows, filtered by pyarrow), found [0, 1, 2, 3]"


class DecidingSource(RicherSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        decided = [(entry, [self.decided(entry, each) for each in filters]) for entry in snapshot.files()]
        kept = [(entry, answers) for entry, answers in decided if False not in answers]
        unsure = {number for _, answers in kept for number, answer in enumerate(answers) if answer is None}
        return [entry for entry, _ in kept], tuple(filters[number] for number in sorted(unsure))

    def decided(self, entry: FileEntry, predicate: spi.Predicate) -> bool | None:
        """Whether it is true for all rows of a file, or for none; None where it may be for some."""
        match predicate:
            case spi.Not(child=child):
                answer = self.decided(entry, child)
                return None if answer is None else not answer
            case spi.And(children=children):
                answers = [self.decided(entry, child) for child in children]
                return False if False in answers else None if None in answers else True
            case spi.Leaf(column=name, op=spi.Op.EQ | spi.Op.LT as op, value=int(value)):
                values = self.column(entry, name)
                if not len(values):
                    return False
                bounds = pc.min_max(values)
                low, high = bounds["min"].as_py(), bounds["max"].as_py()
                if values.null_count:
                    return None
                if op is spi.Op.LT:
                    return True if high < value else False if low >= value else None
                return None if low <= value <= high else False
        return None


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("negates-what-is-not-there", source=DecidingSource)
