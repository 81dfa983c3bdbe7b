"""Rules of the SPI that are a line or two each."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from laketier.registry import load_format
from laketier.spi import (
    FIRST_EPOCH,
    BadRecord,
    BucketBounds,
    FeatureNotSupported,
    Gap,
    IncompatibleData,
    LakeStoragePlugin,
    LogRange,
    LogSplit,
    LogTable,
    OffsetsExpired,
    RowsChanged,
    SourceRange,
    Stale,
    TableLog,
    Token,
    TokenMismatch,
    Watermark,
    WatermarkLost,
    WriteMode,
    attempt_began_at,
    decide,
    fail_on_bad_record,
    new_attempt_id,
    pass_over,
    require_mode,
    to_arrow,
)


class Log(TableLog):
    """One that decodes nothing."""

    @property
    def table(self) -> LogTable:
        return LogTable("orders", "id", pa.schema([("id", pa.int64())]))

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return []

    def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
        yield from ()


def test_a_commit_that_changed_rows_is_refused_or_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RowsChanged, match=r"^db\.t: version 3 \(delete\) deleted"):
        pass_over(3, "delete", where="db.t", skip_changes=False)
    with caplog.at_level(logging.WARNING):
        pass_over(3, "delete", where="db.t", skip_changes=True)
    assert "version 3 (delete) of db.t changed rows, and is skipped" in caplog.text


def test_a_bad_record_fails_unless_somebody_takes_it() -> None:
    record = BadRecord(bucket="0", offset=7, error="no JSON", value=b"x")
    with pytest.raises(IncompatibleData, match="the record at offset 7 of bucket '0' can't be read"):
        fail_on_bad_record(record)
    with pytest.raises(FeatureNotSupported, match="the log of orders does not support the replay of dead letters"):
        Log().decode([record])


def test_errors_travel_whole() -> None:
    expired = OffsetsExpired("gone", gone={"0": [(1, 2)]}, where="db.t")
    named = FeatureNotSupported("upsert", reason="it can't")
    named.name_format("memory")
    for error in (expired, named):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (str(copy), copy.args, copy.__dict__) == (str(error), error.args, error.__dict__)
    assert expired.gone == {"0": ((1, 2),)}
    assert OffsetsExpired("gone").gone == {}
    assert named.args == ("memory does not support upsert",)


@pytest.mark.parametrize("mode", [WriteMode.OVERWRITE, WriteMode.UPSERT])
def test_a_mode_that_a_format_lacks_names_the_ways_out(mode: WriteMode) -> None:
    with pytest.raises(FeatureNotSupported, match="Use another write mode, or a format that has this one"):
        require_mode("memory", {}, mode)
    require_mode("memory", {}, WriteMode.APPEND)


def test_an_attempt_that_is_none_began_before_everything() -> None:
    made = new_attempt_id()
    assert [attempt_began_at(text) for text in ("", "a", made[:-1], made + "0", "x" * len(made))] == [0] * 5
    assert attempt_began_at(made) > 0


def test_what_is_no_predicate_is_no_filter() -> None:
    with pytest.raises(TypeError, match="not a predicate: 3"):
        to_arrow(3)  # type: ignore[arg-type]


def test_a_warehouse_is_a_location_unless_a_plugin_says_otherwise() -> None:
    plugin = load_format("localfile")
    assert type(plugin).warehouse_is_location is LakeStoragePlugin.warehouse_is_location
    assert plugin.warehouse_is_location("lake", {})


def test_a_watermark_is_the_same_text_for_ever() -> None:
    token = Token("pö", "r", 3, fence=2, content="c", source=SourceRange("a", "b"))
    mark = Watermark(token, "id", rows=5, committed_at=7, snapshot_id=9, forgotten=True)
    text = (
        '{"at":7,"commit":"id","content":"c","epoch":3,"fence":2,"forgotten":true,"pipeline":"pö","rows":5,"run":"r",'
        '"snapshot":9,"source":["a","b"],"v":1}'
    )
    assert (mark.to_json(), Watermark.from_json(text)) == (text, mark)


@pytest.mark.parametrize(
    ("last", "asked", "refusal", "told"),
    [
        (None, Token("p", "r", 2), WatermarkLost, "run `laketier pipeline adopt -p p --run r --epoch 1`;"),
        (None, Token("p", "r", 1), WatermarkLost, "run `laketier pipeline adopt -p p --run r --epoch 0`;"),
        (
            Token("p", "other", 4),
            Token("p", "r", FIRST_EPOCH),
            TokenMismatch,
            "--run r --epoch 0`; if they are not, run `laketier pipeline forget -p p`.",
        ),
        (
            Token("p", "r", 4, content="x"),
            Token("p", "r", 4, content="y"),
            TokenMismatch,
            "then run `laketier pipeline rewind -p p --epoch 3`;",
        ),
        (
            Token("p", "r", 0, content="x"),
            Token("p", "r", 0, content="y"),
            TokenMismatch,
            "then run `laketier pipeline forget -p p`;",
        ),
        (Token("p", "r", 9), Token("p", "r", 4), Stale, "run `laketier pipeline rewind -p p --epoch 3`."),
        (Token("p", "r", 9), Token("p", "r", 0), Stale, "run `laketier pipeline forget -p p`."),
        (Token("p", "r", 4), Token("p", "r", 7), Gap, "because epochs 5 to 6 are not in the table"),
        (
            Token("p", "r", 4, source=SourceRange("a", "b")),
            Token("p", "r", 5, source=SourceRange("c", "d")),
            Gap,
            "starts at SourceRange(start='c', end='d', stamp=None), the table ends at SourceRange(start='a', end='b', ",
        ),
    ],
)
def test_a_refusal_names_the_reason_and_the_command(
    last: Token | None, asked: Token, refusal: type[Exception], told: str
) -> None:
    with pytest.raises(refusal) as caught:
        decide(None if last is None else Watermark(last, "c"), asked)
    assert told in str(caught.value)
