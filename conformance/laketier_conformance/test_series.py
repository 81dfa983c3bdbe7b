"""Series of operations that are drawn from seeds: after each step a reader finds what a model in memory has.

Most mistakes in histories need three steps that no test has in this order: others delete a row, files are put together,
and the row comes again. So the steps are drawn. The seeds are always the same ones, and ``--lake-series`` adds others.
"""

from __future__ import annotations

import pytest

from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.series.drawn import prove
from laketier_conformance.series.shapes import SHAPES

SEEDS = {"plain": 8, "keyed": 16, "partitioned": 0, "bucketed": 34, "nested": 12}
"""Of the series that each run has. Among some dozens these had most pairs and triples of steps that did something, with
a format of all features."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(*shape.needs)) for kind, shape in SHAPES.items()]
)
def test_any_series(lake: Lake, harness: Harness, kind: str, pytestconfig: pytest.Config) -> None:
    """Of each kind of table."""
    prove(lake, harness, SHAPES[kind], kind, [*pytestconfig.getoption("lake_series"), SEEDS[kind]])
