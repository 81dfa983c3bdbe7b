from __future__ import annotations

import io
import json

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from laketier.sources.landing.lines import parse_lines, read_blocks
from laketier.sources.landing.options import ExtraColumns
from laketier.sources.landing.text import CsvLines, JsonLines

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
GOOD = st.builds(lambda i, s: json.dumps({"id": i, "s": s}).encode(), st.integers(-9, 9), st.text(max_size=4))
BAD = st.sampled_from(
    [b"null", b" null ", b"[1]", b"1", b"trash", b'{"id": "x"}', b'{"id": 1', b'"', b'{"id":1}{"id":2}', b'{"x": 1}']
)
LINES = st.lists(st.one_of(GOOD.map(lambda g: (g, True)), BAD.map(lambda b: (b, False)), st.just((b"  ", None))))


@given(st.lists(st.binary(max_size=5)), st.integers(1, 7), st.booleans())
def test_blocks_are_the_content_cut_at_line_ends(parts: list[bytes], size: int, ended: bool) -> None:
    content = b"\n".join(parts) + (b"\n" if ended else b"")
    blocks = list(read_blocks(io.BytesIO(content), size))
    assert b"".join(blocks) == content
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert all(blocks)


def read(content: bytes, parser: JsonLines | CsvLines, size: int) -> tuple[list[dict[str, object]], list[int]]:
    rows: list[dict[str, object]] = []
    bad: list[int] = []
    first = 1
    for block in read_blocks(io.BytesIO(content), size):
        for table in parse_lines(block, first, parser, lambda number, _, __: bad.append(number)):
            rows += table.to_pylist()
        first += block.count(b"\n")
    return rows, bad


@given(LINES, st.integers(1, 100))
@example([(b"null", False)], 100)
def test_each_line_of_json_is_a_row_or_bad(lines: list[tuple[bytes, bool | None]], size: int) -> None:
    content = b"\n".join(line for line, _ in lines)
    rows, bad = read(content, JsonLines(SCHEMA, ExtraColumns.FAIL), size)
    assert rows == [json.loads(line) for line, good in lines if good]
    assert bad == [number for number, (_, good) in enumerate(lines, 1) if good is False]


@given(
    st.lists(st.tuples(st.sampled_from([b"1,a", b'2,"b,"', b"3,", b"x,a", b"1", b'1,"a', b'"', b""]))),
    st.integers(1, 60),
)
def test_the_rows_of_csv_do_not_depend_on_blocks(lines: list[tuple[bytes]], size: int) -> None:
    content = b"\n".join(line for (line,) in lines)
    expected = {b"1,a": (1, "a"), b'2,"b,"': (2, "b,"), b"3,": (3, None)}
    rows, bad = read(content, CsvLines(SCHEMA.names, SCHEMA, ","), size)
    assert [(row["id"], row["s"]) for row in rows] == [expected[line] for (line,) in lines if line in expected]
    assert bad == [number for number, (line,) in enumerate(lines, 1) if line and line not in expected]
