"""The columns of text whose writer means harm, or has never heard of others."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from laketier.codecs import inference
from laketier.codecs.bounds import SCHEMA_COLUMNS
from laketier.codecs.decoding import BadValue
from laketier.codecs.inference import inferred_csv, inferred_json
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.lines import read_blocks
from laketier.spi import IncompatibleData
from laketier.tables.inference import SchemaSet
from laketier.tables.promotion import Spelling


def of_json(*lines: str, first: int = 1, given: dict[str, pa.DataType] | None = None) -> dict[str, pa.DataType]:
    [(_, schema)] = inferred_json("\n".join(lines).encode(), first, given)
    return {field.name: field.type for field in schema}


def of_csv(*values: str) -> pa.DataType:
    [(_, schema)] = inferred_csv("\n".join(values).encode(), 2, ["v"], ",")
    return schema.field("v").type


def test_times_within_structs_and_lists_are_found_as_those_of_columns() -> None:
    at, plain = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.25"
    found = of_json(json.dumps({"s": {"at": at, "mixed": at, "l": [{"p": plain}]}, "l": [at, None]}),
                    json.dumps({"s": {"mixed": plain}}))  # fmt: skip
    inner = pa.struct([("p", pa.timestamp("us"))])
    assert found["s"].field("at").type == pa.timestamp("us", "UTC")
    assert found["s"].field("mixed").type == pa.string()
    assert found["s"].field("l").type == pa.list_(inner)
    assert found["l"] == pa.list_(pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["2026-01-01T00:00:00Z"], pa.timestamp("us", "UTC")),
        (["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+02:00"], pa.timestamp("us", "UTC")),
        (["9999-12-31T23:59:59.999999"], pa.timestamp("us")),
        (["2026-01-01T00:00:00.123456789Z"], pa.string()),
        (["2026-01-01T00:00:00", "2026-01-01T00:00:00Z"], pa.string()),
        (["2026-02-30"], pa.string()),
        (["2016-12-31T23:59:60Z"], pa.string()),
        (["007"], pa.string()),
        ([""], pa.string()),
    ],
)
def test_texts_of_json_that_are_times(values: list[str], kind: pa.DataType) -> None:
    assert of_json(*(json.dumps({"v": value}) for value in values)) == {"v": kind}


def test_texts_that_are_asked_to_stay_texts() -> None:
    """In lists, structs and maps, too."""
    line = b'{"d": "2026-01-01", "m": "2026-01-01T00:00:00Z", "s": {"l": ["2026-01-01 00:00:00"], "n": 1}}'
    [(_, schema)] = inferred_json(line, 1, times=False)
    inner = pa.struct([("l", pa.list_(pa.string())), ("n", pa.int64())])
    assert {field.name: str(field.type) for field in schema} == {"d": "string", "m": "string", "s": str(inner)}
    [(_, schema)] = inferred_json(line, 1, {"d": pa.date32()}, times=False)
    assert schema.field("d").type == pa.date32()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-0"], pa.int64()),
        (["007", "1"], pa.string()),
        (["007", "1.5"], pa.string()),
        (["0x10", "1"], pa.string()),
        (["9007199254740993", "1.5"], pa.string()),
        (["9223372036854775809"], pa.string()),
        (["1e400"], pa.string()),
        (["0.5", "007e1"], pa.string()),
        (["0.5", "nan"], pa.float64()),
        (["Nan", "Inf"], pa.string()),
        (["+4912345678", "1"], pa.string()),
        (["true", "FALSE"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["2026-01-01"], pa.date32()),
        (["2026-01-01T00:00:00.5"], pa.timestamp("us")),
        (["2026-01-01T00:00:00.123456789"], pa.timestamp("ns")),
        (["2026-01-01", "n/a"], pa.string()),
        (["01/02/2026"], pa.string()),
        (["10:00:00"], pa.time32("s")),
        (['"1,000"'], pa.string()),
    ],
)
def test_values_of_csv_are_of_a_type_that_changes_none_of_them(values: list[str], kind: pa.DataType) -> None:
    assert of_csv(*values) == kind


def test_what_no_column_holds_is_told_with_its_line() -> None:
    """Blank lines count. A record of Arrow's has no number that a user can find."""
    for lines, says in [
        (['{"v": 1}', "", '{"v": "a"}'], "its line 12: the field v has a value of the kind string, and a line before"),
        (['{"s": {"v": 1}}', '{"s": {"v": [1]}}'], "its line 11: the field s.v has a value of the kind array"),
        (['{"v": 1}', '{"u": [{"v": 1, "\\u0076": 2}]}'], r"its line 11: the field u\[\].v is there twice"),
        (["", "", "7"], "its line 12: the value is not a JSON object"),
        (['{"v": 1.5}', " ", '{"v": 9007199254740993}'], "its line 12: 9007199254740993 in column 'v' has no exact"),
        (['{"v": 1}', '{"v": 1e400}'], "its line 11: .*too big"),
    ]:
        with pytest.raises(BadValue, match=says):
            of_json(*lines, first=10)
    with pytest.raises(BadValue, match=r"its line 3: Expected 1 columns, got 2|its line 3: .*1, got 2"):
        of_csv("1", "1,2")


def test_a_type_that_was_chosen_is_what_the_lines_are_read_as() -> None:
    big = pa.decimal128(20, 0)
    lines = ['{"v": 1.0, "w": 1}', '{"v": 9007199254740993}']
    with pytest.raises(BadValue, match="declare it as decimal128"):
        of_json(*lines)
    assert of_json(*lines, given={"v": big, "other": pa.string()}) == {"v": big, "w": pa.int64()}
    assert of_json('{"v": null}', given={"v": big, "w": big}) == {"v": big}
    with pytest.raises(BadValue, match="its line 1: "):
        of_json('{"v": 1.25}', given={"v": big})
    [(_, schema)] = inferred_csv(b"1,2", 1, ["a", "b"], ",", {"a": pa.string(), "c": pa.string()})
    assert schema.types == [pa.string(), pa.int64()]


def test_lines_that_all_have_fields_of_their_own_take_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow makes a value of each field for each line: 10,000 lines of 11 bytes took 8 GB."""
    monkeypatch.setattr(inference, "_PIECE", 8 * 10_000)
    lines = b"".join(b'{"%d":1}\n' % at for at in range(1000))
    found = [(place, len(schema)) for place, schema in inferred_json(lines, 1)]
    assert all(columns**2 <= 10_000 for _, columns in found)
    assert sum(columns for _, columns in found) == 1000
    assert [place for place, _ in found] == [1 + sum(columns for _, columns in found[:at]) for at in range(len(found))]


def test_files_whose_columns_are_too_many_together_are_told() -> None:
    found = SchemaSet(Spelling.JSON)
    schemas = {file: pa.schema([(f"{file}{at}", pa.int64()) for at in range(4000)]) for file in "abc"}
    found.add(schemas["a"], "a.json")
    found.add(schemas["b"], "b.json")
    with pytest.raises(IncompatibleData, match=r"c\.json: the files have more than 10,000 columns together"):
        found.add(schemas["c"], "c.json")


def test_a_line_of_too_many_fields_is_told_and_not_one_of_many_values() -> None:
    nested = b'{"s": {%s}}' % b",".join(b'"%d": [{"a": 1}]' % at for at in range(10_001))
    with pytest.raises(BadValue, match="its line 1: it has more than 10,000 fields"):
        list(inferred_json(nested, 1))
    same = b'{"s": [%s]}' % b",".join([b'{"a": "x:y", "b": {"a": 1}}'] * 10_001)
    assert [str(schema.field("s").type) for _, schema in inferred_json(same, 1)] == [
        "list<item: struct<a: string, b: struct<a: int64>>>"
    ]


def test_the_first_of_many_bad_lines_is_found_without_reading_each(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = JsonDecoder.at_once
    monkeypatch.setattr(JsonDecoder, "at_once", lambda self, values: reads.append(1) or real(self, values))
    with pytest.raises(BadValue, match="its line 3: "):
        of_json('{"v": 1.5}', '{"v": 1}', *['{"v": 9007199254740993}'] * 500)
    assert len(reads) < 40


def test_each_text_is_parsed_once_however_many_columns_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    parses = []
    real = inference.read_documents
    monkeypatch.setattr(inference, "read_documents", lambda *args: parses.append(1) or real(*args))
    row = json.dumps({f"c{at}": "2026-01-01T00:00:00Z" for at in range(300)})
    assert set(of_json(row).values()) == {pa.timestamp("us", "UTC")}
    assert len(parses) == 2


def test_a_line_without_an_end_is_not_read_to_its_end() -> None:
    """10 MB of gzip are 10 GB of zeros, which took a minute to be told."""
    reads = []

    class Endless:
        def read(self, size: int) -> bytes:
            reads.append(size)
            assert len(reads) < 10
            return b"\0" * size

    assert [block.long > 2000 for block in read_blocks(Endless(), 1000, 2000, to_its_end=False)] == [True]
    assert len(reads) == 3


def test_a_header_of_too_many_columns_is_told() -> None:
    """To look for the types of 200,000 columns took minutes."""
    names = [f"c{number}" for number in range(SCHEMA_COLUMNS + 1)]
    line = b",".join([b"1"] * len(names))
    with pytest.raises(BadValue, match="its header names 10,001 columns, and no more than 10,000 are found"):
        list(inferred_csv(line, 2, names, ","))
