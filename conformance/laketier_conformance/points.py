"""Tables of texts and vectors, and which of their rows are nearest: found out by looking at each row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from laketier.spi import Nearest
from laketier_conformance.documents import TEXTS, Documents, documents
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, token

DIMENSIONS = 4
VECTORS = pa.schema([*TEXTS, ("v", pa.list_(pa.float32(), DIMENSIONS))])
ODD = 9_000
"""From this id on a row's vector has a number that is none: it is near to nothing, and no search finds it."""
_NO_VECTOR = [math.nan, 1.0, 0.0, 0.0]
ASKED = ((0.25, -1.0, 2.5, 0.5), (0.0, 0.0, 0.0, 1.0), (-3.0, 2.0, 1.0, -0.125))


@dataclass(frozen=True)
class Pointed:
    """A table of texts and vectors."""

    texts: Documents

    @classmethod
    def of(cls, lake: Lake, harness: Harness, *, rounds: int = 3, rows: int = 50) -> Pointed:
        """Some rounds of one file each."""
        lake.storage.searcher(lake.create(name="db.plain").info)  # a format without it refuses here
        made = cls(Documents(lake.create(VECTORS), harness.text_options))
        for epoch in range(rounds):
            made.append(epoch, range(epoch * rows, (epoch + 1) * rows))
        return made

    def append(self, epoch: int, ids: Sequence[int]) -> None:
        """A round."""
        columns = documents(ids).columns
        written = (_NO_VECTOR if row_id >= ODD else vector_of(row_id) for row_id in ids)
        vectors = pa.array(written, VECTORS.field("v").type)
        self.texts.table.publish_arrow([pa.record_batch([*columns, vectors], schema=VECTORS)], token(epoch))
        self.texts.ids.extend(ids)

    def ranked(self, query: Nearest, keep: Callable[[int], bool] = lambda _: True) -> list[tuple[float, int]]:
        """The distances of all rows, the nearest first, equal ones in the order of the table."""
        vectors = ((row_id, vector_of(row_id)) for row_id in self.texts.order if keep(row_id))
        far = [(distance(query.metric or "l2", query.vector, each), row_id) for row_id, each in vectors if each]
        return sorted(far, key=lambda pair: pair[0])


def vector_of(row_id: int) -> list[float] | None:
    """The vector of a row, exact in any float; None where it has none to compare. Some are there twice."""
    if row_id % 11 == 3 or row_id >= ODD:
        return None
    seed = row_id - 1 if row_id % 10 == 7 and row_id % 11 != 4 else row_id
    return [((seed * step) % 41 - 20) / 8 for step in (7, 11, 17, 29)]


def distance(metric: str, one: Sequence[float], other: Sequence[float]) -> float:
    """As a search tells it."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    if metric == "l2":
        return math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    if metric == "dot":
        return 1 - product
    return 1 - product / (math.hypot(*one) * math.hypot(*other))


def same_places(rows: pa.Table, wanted: list[tuple[float, int]], whole: list[tuple[float, int]], told: str) -> None:
    """``wanted``: those that have to come; ``whole``: all, for the distance of any."""
    ids, distances = rows["id"].to_pylist(), rows["_distance"].to_pylist()
    far = {row_id: each for each, row_id in whole}
    expect(len(ids), len(wanted), f"{told}: how many there are")
    odd = [i for i in ids if i not in far]
    assert not odd, f"{told}: rows {odd} have no vector, or are none of the table"
    expect(distances, sorted(distances), f"{told}: the distances are in order")
    expect(distances, pytest.approx([far[i] for i in ids], abs=1e-4), f"{told}: their distances")
    expect(distances, pytest.approx([each for each, _ in wanted], abs=1e-4), f"{told}: none is left out")
    place = {row_id: at for at, (_, row_id) in enumerate(whole)}
    for (one, a), (other, b) in itertools.pairwise(zip(ids, distances, strict=True)):
        assert a < b or vector_of(one) != vector_of(other) or place[one] < place[other], (
            f"{told}: rows {one} and {other} are equally far, and not in the order of the table"
        )
