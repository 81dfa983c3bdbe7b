"""The table of values, run through every source that reads text; and what is typed, through those that read that."""

from __future__ import annotations

import datetime
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from codec_values import BAD, CASES, DOCUMENTS
from kafka_logs import produce, read, source_at
from laketier.codecs.arrow_types import parse_columns
from laketier.codecs.csv_values import CsvDecoder
from laketier.codecs.decoding import Decoder
from laketier.codecs.json_values import JsonDecoder
from laketier.spi import BadRecord
from laketier_kafka.mock_broker import KafkaBroker
from landing import log_of, rows

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "codecs.md"
KINDS = list(dict.fromkeys(case.kind for case in CASES))


def shown(value: Any) -> str:
    """So that NaN is NaN and -0.0 is not 0.0."""
    return value.isoformat() if isinstance(value, datetime.datetime) else repr(value)


def json_lines(kind: str) -> tuple[list[bytes], list[Any]]:
    cases = [case for case in CASES if case.kind == kind and case.json is not None]
    return [f'{{"v": {case.json}}}'.encode() for case in cases], [case.value for case in cases]


def csv_lines(kind: str) -> tuple[list[bytes], list[Any]]:
    cases = [case for case in CASES if case.kind == kind and case.csv is not None]
    return [f"{case.csv},".encode() for case in cases], [case.from_csv for case in cases]


def agree(good: list[Any], bad: list[int], expected: list[Any]) -> None:
    """Numbers of the bad ones, and the values of the others, in order."""
    assert bad == [at for at, value in enumerate(expected) if value is BAD]
    assert list(map(shown, good)) == [shown(value) for value in expected if value is not BAD]


def decoder_of(kind: str, csv: bool) -> Decoder:
    schema = parse_columns({"v": kind}, prefix="", origin="")
    assert schema is not None
    return CsvDecoder(schema, ("v", "_")) if csv else JsonDecoder(schema)


@pytest.mark.parametrize(("kind", "csv"), list(itertools.product(KINDS, [False, True])))
def test_each_value_by_itself_and_among_the_others(kind: str, csv: bool) -> None:
    lines, expected = csv_lines(kind) if csv else json_lines(kind)
    decoder = decoder_of(kind, csv)
    decoded = decoder.decode(lines)
    agree(decoded.rows.column(0).to_pylist(), [one.index for one in decoded.bad], expected)
    for line, value in zip(lines, expected, strict=True):
        alone = decoder.decode([line])
        agree(alone.rows.column(0).to_pylist(), [one.index for one in alone.bad], [value])


@pytest.mark.parametrize("csv", [False, True])
def test_a_landing_zone_reads_the_table(tmp_path: Path, csv: bool) -> None:
    for number, kind in enumerate(KINDS):
        lines, expected = csv_lines(kind) if csv else json_lines(kind)
        if not lines:
            continue
        zone = tmp_path / str(number)
        (zone / "t").mkdir(parents=True)
        (zone / "t" / "f").write_bytes(b"\n".join([b"v,_"] * csv + lines) + b"\n")
        bad: list[BadRecord] = []
        options = {"format": "csv", "extra-columns": "ignore"} if csv else {"format": "json"}
        found = rows(log_of(zone, {**options, "columns.v": kind}), on_bad_record=bad.append)
        numbers = [int(re.findall(r"^line (\d+) of ", record.error)[0]) - 1 - csv for record in bad]
        agree([row["v"] for row in found], numbers, expected)


def test_a_topic_reads_the_table(broker: KafkaBroker, topic: str) -> None:
    start = 0
    for kind in KINDS:
        lines, expected = json_lines(kind)
        produce(broker.bootstrap, topic, lines)
        log = source_at(broker.bootstrap).open(topic, {"value-format": "json", "columns.v": kind})
        bad: list[BadRecord] = []
        [split] = log.plan(_range(start, start + len(lines)))
        found = [row["v"] for batch in log.read(split, on_bad_record=bad.append) for row in batch.to_pylist()]
        agree(found, [record.offset - start for record in bad], expected)
        assert [record.value for record in bad] == [lines[record.offset - start] for record in bad]
        start += len(lines)


def test_documents_are_the_same_in_a_topic_and_a_landing_zone(broker: KafkaBroker, topic: str, tmp_path: Path) -> None:
    documents = [document for document, _ in DOCUMENTS]
    expected = [value for _, value in DOCUMENTS]
    produce(broker.bootstrap, topic, documents)
    log = source_at(broker.bootstrap).open(topic, {"value-format": "json", "columns.v": "int64"})
    refused: list[BadRecord] = []
    found = read(log, on_bad_record=refused.append).column("v").to_pylist()
    agree(found, [record.offset for record in refused], expected)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(b"\n".join(documents) + b"\n")
    refused = []
    options = {"format": "json", "columns.v": "int64", "extra-columns": "ignore"}
    landed = rows(log_of(tmp_path, options), on_bad_record=refused.append)
    agree([row["v"] for row in landed], [documents.index(record.value or b"") for record in refused], expected)


def _range(start: int, end: int) -> Any:
    from laketier.spi import LogOffsets, LogRange

    return LogRange(LogOffsets({"0": start}), LogOffsets({"0": end}))


def test_the_page_shows_the_table() -> None:
    """`python tests/support/codec_page.py` writes it."""
    from codec_page import page

    assert PAGE.read_text() == page()
