"""The model of a large index on paper: its page shows what it says, and it says what its rates imply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from laketier_verification.search.model import CORES, MEASURED, Table, estimate, markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proof" / "search-model.md"


def test_the_page_shows_the_table_of_the_model() -> None:
    assert "\n".join(markdown()) in PAGE.read_text(encoding="utf-8"), "python -m laketier_verification.search.model"


def test_the_page_shows_the_ratio_beside_the_reported_one() -> None:
    one, eight = estimate(1).hours, estimate(8).hours
    page = PAGE.read_text(encoding="utf-8")
    assert f"| this model, executors of {CORES} cores | 1 | {one:.1f} | 1 |" in page
    assert f"| | 8 | {eight:.1f} | {one / eight:.1f} |" in page


def test_one_core_takes_the_bytes_by_the_rate() -> None:
    one = estimate(1, cores=1, table=Table(documents=1, text=3600 * MEASURED.text_per_core))
    assert one.build == pytest.approx(1.0)
    two = estimate(2, cores=1, table=Table(documents=1, text=3600 * MEASURED.text_per_core))
    assert two.build == pytest.approx(0.5 / MEASURED.efficiency)


@pytest.mark.parametrize("executors", [1, 4, 16])
def test_what_the_rates_imply(executors: int) -> None:
    usual = estimate(executors)
    slow = estimate(executors, rates=replace(MEASURED, text_per_core=MEASURED.text_per_core / 2))
    assert slow.build == pytest.approx(2 * usual.build)
    near = estimate(executors, rates=replace(MEASURED, bandwidth=MEASURED.bandwidth * 2))
    assert near.transfer == pytest.approx(usual.transfer / 2)
    more = estimate(2 * executors)
    assert more.build + more.transfer == pytest.approx((usual.build + usual.transfer) / 2)
    assert more.parts == 2 * usual.parts
    assert more.publish > usual.publish
    assert more.requests == usual.requests
