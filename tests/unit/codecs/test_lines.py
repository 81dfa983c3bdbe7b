from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from laketier.codecs import json_values, lines
from laketier.codecs.csv_values import CsvDecoder
from laketier.codecs.decoding import BadValue, Decoder
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.lines import parse_lines, read_blocks

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
GOOD = st.builds(lambda i, s: json.dumps({"id": i, "s": s}).encode(), st.integers(-9, 9), st.text(max_size=4))
BAD = st.sampled_from(
    [b"null", b" null ", b"[1]", b"1", b"trash", b'{"id": "x"}', b'{"id": 1', b'"', b'{"id":1}{"id":2}', b'{"x": 1}']
)
LINES = st.lists(st.one_of(GOOD.map(lambda g: (g, True)), BAD.map(lambda b: (b, False)), st.just((b"  ", None))))
BOM = b"\xef\xbb\xbf"


@given(st.lists(st.binary(max_size=5)), st.integers(1, 7), st.booleans(), st.booleans())
def test_blocks_are_the_content_cut_at_line_ends(parts: list[bytes], size: int, ended: bool, marked: bool) -> None:
    content = b"\n".join(parts) + (b"\n" if ended else b"")
    assume(not content.startswith(tuple(lines._NO_TEXT)))
    blocks = list(read_blocks(io.BytesIO(BOM * marked + content), size))
    assert b"".join(block.data for block in blocks) == (content if marked else content.removeprefix(BOM))
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert all(block.data for block in blocks)
    before = b""
    for block in blocks:
        assert block.first == before.count(b"\n") + 1
        before += block.data


@given(st.lists(st.integers(0, 30), max_size=9), st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_a_line_that_is_too_long_is_passed_over_alone(lengths: list[int], size: int, longest: int, ended: bool) -> None:
    lines = [b"%d" % (at % 10) * length for at, length in enumerate(lengths)]
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    kept: dict[int, bytes] = {}
    long: dict[int, int] = {}
    for block in read_blocks(io.BytesIO(content), size, longest):
        if block.long:
            long[block.first] = block.long
        else:
            kept.update(enumerate(block.data.removesuffix(b"\n").split(b"\n"), block.first))
    for number, line in enumerate(lines, 1):
        if number in long:
            assert (long[number], len(line) > longest) == (len(line), True)
        elif line:
            assert kept[number] == line
    # A line that came within one read was held anyway; more than a read and what is allowed never is.
    assert all(len(line) <= longest + size for line in kept.values())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(b'{"id": 1}'), "it is compressed with gzip, and its name does not end in .gz"),
        ('{"id": 1}\n'.encode("utf-16"), "it is text in UTF-16; save it as UTF-8"),
        ('{"id": 1}\n'.encode("utf-16-be"), "it is text in UTF-16; save it as UTF-8"),
        (b"PAR1\x15\x04", "it is a Parquet file"),
    ],
    ids=["gzip", "utf-16", "utf-16 without its mark", "parquet"],
)
def test_a_stream_that_is_no_text_is_one_refusal(content: bytes, why: str) -> None:
    with pytest.raises(BadValue, match=f"^{why}$"):
        next(read_blocks(io.BytesIO(content)))


def read(content: bytes, decoder: Decoder, size: int) -> tuple[list[dict[str, object]], list[int]]:
    rows: list[dict[str, object]] = []
    bad: list[int] = []
    for block in read_blocks(io.BytesIO(content), size):
        for batch in parse_lines(block.data, block.first, decoder, lambda number, _, __: bad.append(number)):
            rows += batch.to_pylist()
    return rows, bad


@given(LINES, st.integers(1, 100))
@example([(b"null", False)], 100)
def test_each_line_of_json_is_a_row_or_bad(lines: list[tuple[bytes, bool | None]], size: int) -> None:
    content = b"\n".join(line for line, _ in lines)
    rows, bad = read(content, JsonDecoder(SCHEMA, unknown_fields=False), size)
    assert rows == [json.loads(line) for line, good in lines if good]
    assert bad == [number for number, (_, good) in enumerate(lines, 1) if good is False]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [b"1,a", b'2,"b,"', b"3,", b"x,a", b"1", b'1,"a', b'"', b"", b"0x1,a", b"4,\rb", b'5",",c', b"6,\xef"]
            )
        )
    ),
    st.integers(1, 60),
)
def test_the_rows_of_csv_do_not_depend_on_blocks(lines: list[tuple[bytes]], size: int) -> None:
    content = b"\n".join(line for (line,) in lines)
    expected = {b"1,a": (1, "a"), b'2,"b,"': (2, "b,"), b"3,": (3, None)}
    rows, bad = read(content, CsvDecoder(SCHEMA, ("id", "s")), size)
    assert [(row["id"], row["s"]) for row in rows] == [expected[line] for (line,) in lines if line in expected]
    assert bad == [number for number, (line,) in enumerate(lines, 1) if line and line not in expected]


def test_a_mark_of_byte_order_within_a_file_is_text() -> None:
    content = b"\xef\xbb\xbf1\n" * 3
    rows, bad = read(content, CsvDecoder(pa.schema([("s", pa.string())]), ("s",)), 5)
    assert rows == [{"s": "1"}, {"s": "\ufeff1"}, {"s": "\ufeff1"}]
    assert bad == []


def test_many_lines_are_decoded_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may say nothing of most columns, and would become any number of nulls."""
    monkeypatch.setattr(lines, "CELLS", 9)
    content = b'{"id": 0}\n\nx\n{}\n{"id": 1}\n{"id": 2}\n\ny\n{"id": 3}\n'
    bad: list[int] = []
    decoder = JsonDecoder(pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.string())]))]))
    batches = list(parse_lines(content, 5, decoder, lambda number, _, __: bad.append(number)))
    assert [row["id"] for batch in batches for row in batch.to_pylist()] == [0, None, 1, 2, 3]
    assert bad == [7, 12]
    assert max(batch.num_rows for batch in batches) <= 3


@pytest.mark.parametrize(("delimiter", "nulls"), [("\t", b"\t"), (" ", b" "), (",", b",")])
def test_a_line_of_delimiters_alone_is_a_record_of_nulls(delimiter: str, nulls: bytes) -> None:
    content = b"1|x\n|\n\n\r\n2|y\n".replace(b"|", nulls)
    rows, bad = read(content, CsvDecoder(SCHEMA, ("id", "s"), delimiter), 100)
    assert [(row["id"], row["s"]) for row in rows] == [(1, "x"), (None, None), (2, "y")]
    assert bad == []


def test_what_is_json_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again in each half, where many values are of another type."""
    looked: list[bytes] = []
    loads = json.loads

    def counted(text: bytes, **how: object) -> object:
        looked.append(text)
        return loads(text, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(json_values.json, "loads", counted)
    values = [b'{"id": %d}' % at if at % 2 else b'{"id": "x"}' for at in range(128)] + [b"x"]
    decoded = JsonDecoder(SCHEMA).decode(values)
    assert [one.index for one in decoded.bad] == [*range(0, 128, 2), 128]
    assert list(decoded.index) == list(range(1, 128, 2))
    assert len(looked) <= len(values)


@pytest.mark.parametrize(
    ("document", "deep"),
    [(b"{}", 1), (b'{"a": [[]], "b": []}', 3), (b'{"a": "[[[[\\"[[", "b": "\\\\"}', 1), (b'{"[": {"a": "]"}}', 2)],
)
def test_how_deep_a_document_is(document: bytes, deep: int) -> None:
    assert json_values.depth_of(document) == deep
