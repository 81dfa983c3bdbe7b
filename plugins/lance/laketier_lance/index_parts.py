"""How a build is cut into parts: runs of neighbours, as Lance compacts only fragments side by side that are in the same
segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laketier.spi import IndexPart


def balanced(units: Mapping[str, int], max_parts: int) -> tuple[IndexPart, ...]:
    """At most ``max_parts`` runs of neighbours, the largest of which has as few rows as can be. Rows, as Lance tells no
    bytes of a column. ``units`` are in the order of the dataset, which is not that of their ids after a compaction."""
    ordered = list(units.items())
    if not ordered:
        return ()
    least, most = max(rows for _, rows in ordered), sum(rows for _, rows in ordered)
    while least < most:
        middle = (least + most) // 2
        if len(_runs(ordered, middle)) <= max_parts:
            most = middle
        else:
            least = middle + 1
    runs = _runs(ordered, least)
    return tuple(
        IndexPart(number, tuple(unit for unit, _ in run), sum(rows for _, rows in run))
        for number, run in enumerate(runs)
    )


def _runs(ordered: Sequence[tuple[str, int]], most: int) -> list[list[tuple[str, int]]]:
    """Runs of neighbours, each filled up to ``most`` rows. None is empty."""
    runs: list[list[tuple[str, int]]] = [[]]
    filled = 0
    for unit, rows in ordered:
        if runs[-1] and filled + rows > most:
            runs.append([])
            filled = 0
        runs[-1].append((unit, rows))
        filled += rows
    return runs


def groups_to_merge(segments: Sequence[tuple[str, int]], left: int) -> tuple[IndexPart, ...]:
    """The runs of neighbours to merge, so that ``left`` segments are left: the two neighbours that have the fewest rows
    together become one, again and again. So a large segment is written again only once those beside it are as large:
    what is written in all grows by the logarithm of the number of appends. ``segments``: names and rows, in the order
    of the dataset."""
    runs: list[tuple[list[str], int]] = [([name], rows) for name, rows in segments]
    while len(runs) > max(1, left):
        at = min(range(len(runs) - 1), key=lambda each: runs[each][1] + runs[each + 1][1])
        first, second = runs[at : at + 2]
        runs[at : at + 2] = [(first[0] + second[0], first[1] + second[1])]
    merged = [(names, rows) for names, rows in runs if len(names) > 1]
    return tuple(IndexPart(number, tuple(names), rows) for number, (names, rows) in enumerate(merged))
