"""Where a lake table has read its log up to, by its watermark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import LogOffsets, LogTable, SourceRange, TableChanged, Token, Watermark, WatermarkLost
from laketier.tiering.committed import committed_offsets

LOG = LogTable("orders", "id-1", pa.schema([("id", pa.int64())]))
END = LogOffsets({"0": 5, "1": 7})
TOKEN = Token("p", "id-1", 3, source=SourceRange(LogOffsets({"0": 1, "1": 7}).to_text(), END.to_text()))


def committed(watermark: Watermark | None) -> LogOffsets | None:
    return committed_offsets(watermark, LOG, where="db.orders")


def test_the_end_of_the_last_round_is_it() -> None:
    assert committed(Watermark(TOKEN, "c")) == END


@pytest.mark.parametrize("watermark", [None, Watermark(TOKEN, "c", forgotten=True)])
def test_a_table_that_knows_nothing_of_the_log_is_read_from_its_beginning(watermark: Watermark | None) -> None:
    assert committed(watermark) is None


def test_a_forgotten_pipeline_may_go_on_with_another_log() -> None:
    assert committed(Watermark(Token("p", "id-0", 3), "c", forgotten=True)) is None


def test_a_log_that_was_made_anew_is_not_taken_for_the_old_one() -> None:
    with pytest.raises(TableChanged, match=r"db\.orders: .* 'id-1', and the lake table was tiered from 'id-0'"):
        committed(Watermark(Token("p", "id-0", 3, source=TOKEN.source), "c"))


def test_a_watermark_without_offsets_is_not_taken_for_the_beginning() -> None:
    with pytest.raises(WatermarkLost, match="knows epoch 3 of pipeline 'p', and no offsets"):
        committed(Watermark(Token("p", "id-1", 3), "c"))
