"""What producers set beside the value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from laketier.codecs.arrow_values import ArrowDecoder
from laketier.spi import BadRecord
from laketier_kafka.cluster import Topic
from laketier_kafka.columns import StoredMessage, unfit
from laketier_kafka.log import KafkaLog
from laketier_kafka.options import KafkaTableOptions

WANTED = (("headers", "_headers"), ("offset", "_offset"))


@dataclass(frozen=True)
class Headed(StoredMessage):
    said: Any = None

    def headers(self) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def of(*headers: Any) -> list[Headed]:
    return [Headed(BadRecord(bucket="0", offset=at, error="", value=b""), said) for at, said in enumerate(headers)]


@pytest.mark.parametrize("bad", [[("a\udcff", b"x")], UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")])
def test_a_header_that_is_no_text_is_its_records_own(bad: Any) -> None:
    found, made = unfit(WANTED, of(None, [("a", b"x")], bad, [], bad))
    assert not made
    assert list(found) == [2, 4]
    assert all(why.startswith("column '_headers': ") for why in found.values())


def test_an_error_of_the_machine_is_nobodys_record() -> None:
    with pytest.raises(OSError, match="disk"):
        unfit(WANTED, of(None, OSError(5, "disk")))


def test_columns_of_messages_that_fit_are_made_once() -> None:
    found, made = unfit(WANTED, of(None, [("a", b"x")]))
    assert not found
    assert made["headers"].to_pylist() == [None, [{"key": "a", "value": b"x"}]]


def _arrow(*values: int) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"a": pa.array(values, pa.int64())}))
    return sink.getvalue().to_pybytes()


def test_a_message_of_many_rows_is_one_bad_record() -> None:
    decoder = ArrowDecoder(pa.schema([("a", pa.int64())]))
    added = (("timestamp", "at"), ("offset", "o"))
    options = KafkaTableOptions(include_timestamp=True, include_offset=True)
    log = KafkaLog(None, Topic("t", "id", (0,)), options, decoder, added)  # type: ignore[arg-type]
    records = [
        BadRecord(bucket="0", offset=offset, error="", value=_arrow(*values), at=at)
        for offset, (at, *values) in enumerate([(5, 1, 2), (2**62, 3, 4, 5), (6, 6), (7,), (8, 7)])
    ]
    bad: list[BadRecord] = []
    [batch] = log.decode(records, on_bad_record=bad.append)
    assert [(one.offset, one.value) for one in bad] == [(1, records[1].value), (3, records[3].value)]
    assert bad[1].error == "it holds no rows", "so that no replay takes it for one whose rows are in the table"
    assert batch.column("a").to_pylist() == [1, 2, 6, 7]
    assert batch.column("o").to_pylist() == [0, 0, 2, 4]
    assert batch.column("at").cast(pa.int64()).to_pylist() == [5, 5, 6, 8]
    [batch] = log.decode([records[2], records[4]])
    assert batch.column("at").cast(pa.int64()).to_pylist() == [6, 8]


def test_a_message_whose_time_was_not_kept_stays_a_dead_letter_where_it_is_a_column() -> None:
    """With a null in its place it would be a row: a round that was killed after its dead letters would find that the
    settings had changed."""
    decoder = ArrowDecoder(pa.schema([("a", pa.int64())]))
    topic = Topic("t", "id", (0,))
    timed = KafkaLog(None, topic, KafkaTableOptions(include_timestamp=True), decoder, (("timestamp", "at"),))  # type: ignore[arg-type]
    bad: list[BadRecord] = []
    list(timed.decode([BadRecord(bucket="0", offset=1, error="", value=_arrow(1), at=2**62)], on_bad_record=bad.append))
    dead_letter = replace(bad.pop(), at=None)
    assert list(timed.decode([dead_letter], on_bad_record=bad.append)) == []
    assert (bad[0].offset, bad[0].at) == (1, None)
    assert list(timed.decode([replace(bad[0], at=None)], on_bad_record=bad.append)) == []
    plain = KafkaLog(None, topic, KafkaTableOptions(), decoder, ())  # type: ignore[arg-type]
    assert [batch.to_pylist() for batch in plain.decode([dead_letter])] == [[{"a": 1}]]
    unknown = replace(dead_letter, error="it has a field that is no column")
    assert [batch.to_pylist() for batch in timed.decode([unknown])] == [[{"a": 1, "at": None}]]
