"""CSV: a record a line, its values between delimiters."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.types as pt

from laketier.codecs.decoding import BLANKS, BadValue, Decoded, Decoder, Undecodable, one_batch
from laketier.codecs.said import shown
from laketier.codecs.text_types import cast_text, check_text_types, large_floats, refuse_rounded

_BOM = b"\xef\xbb\xbf"
_VALUE = re.compile(
    r"\s*([+-]?\.?[0-9][0-9.]*(e[+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|true|false|null)\s*\Z", re.IGNORECASE
)
_INTEGER = r"^[\s\v]*-?\d+[\s\v]*$"


@dataclass(frozen=True)
class CsvDecoder(Decoder):
    """Each value is one line, without its end. ``names``: the columns of the file, in its order; a column of the schema
    that is not among them is null. Unquoted nothing is null; a value can't hold the end of a line."""

    schema: pa.Schema
    names: tuple[str, ...]
    delimiter: str = ","

    def check(self, *, prefix: str = "columns.", where: str | None = None) -> CsvDecoder:
        """Itself. Raises `ConfigError` for columns that CSV has no values for."""
        check_text_types(self.schema, nested=False, what="CSV", prefix=prefix, where=where)
        return self

    @property
    def blanks(self) -> bytes:
        """A line of delimiters alone is a record of nulls."""
        return blanks_beside(self.delimiter)

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`."""
        block = b"\n".join(values)
        bad = _refused(values, block, self.delimiter)
        index: Sequence[int] = range(len(values))
        if bad:
            refused = {one.index for one in bad}
            index = [at for at in index if at not in refused]
            block = b"\n".join(values[at] for at in index)
        wanted = [field for field in self.schema if field.name in self.names]
        kinds = {field.name: pa.string() if pt.is_temporal(field.type) else field.type for field in wanted}
        if not index:
            return Decoded(one_batch([], self.schema), index, bad)
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadValue(str(error)) from None
        odd: dict[int, str] = {}
        table = self._parse(block, kinds, odd)
        if odd:  # told by one read, all of them
            bad += [Undecodable(index[at], why) for at, why in odd.items()]
            bad.sort(key=lambda one: one.index)
            index = [place for at, place in enumerate(index) if at not in odd]
            block = b"\n".join(values[at] for at in index)
        if table.num_rows != len(index):
            raise BadValue(f"the line is {table.num_rows} records, not one")
        return Decoded(self._rows(table, block, kinds) if index else one_batch([], self.schema), index, bad)

    def _rows(self, table: pa.Table, block: bytes, kinds: dict[str, pa.DataType]) -> pa.RecordBatch:
        # Arrow reads hexadecimal numbers, rounds integers to floats and calls what is beyond all floats infinite.
        large = [name for name, kind in kinds.items() if pt.is_floating(kind) and len(_large(table[name]))]
        if b"0x" in block or b"0X" in block:
            large += [name for name, kind in kinds.items() if pt.is_integer(kind)]
        if large:
            texts = self._parse(block, {name: pa.string() for name in large})
            for name in large:
                _check_numbers(table[name], texts[name], name)
        return one_batch(self._cast(table).combine_chunks().to_batches(), self.schema)

    def _cast(self, table: pa.Table) -> pa.Table:
        columns = []
        for field in self.schema:
            if field.name not in self.names:
                columns.append(pa.nulls(table.num_rows, field.type))
                continue
            column = table[field.name]
            # As Arrow does around numbers.
            column = pc.ascii_trim_whitespace(column) if pt.is_temporal(field.type) else column
            columns.append(cast_text(column, field.type))
        return pa.table(columns, schema=self.schema)

    def _parse(self, block: bytes, kinds: dict[str, pa.DataType], odd: dict[int, str] | None = None) -> pa.Table:
        return read_lines(block, self.names, self.delimiter, kinds, odd)


def read_lines(
    block: bytes,
    names: Sequence[str],
    delimiter: str,
    kinds: dict[str, pa.DataType] | None,
    odd: dict[int, str] | None = None,
) -> pa.Table:
    """By pyarrow: these columns, or all with the types that it finds. Gathers in ``odd`` the places of lines that have
    more or fewer values than there are columns, and why; without it, and over values, raises ``ArrowInvalid``."""

    def skip(row: Any) -> str:
        assert odd is not None
        odd[row.number - 1] = f"Expected {row.expected_columns} columns, got {row.actual_columns}"
        return "skip"

    # It takes an order mark at the start of a block for no part of the text, wherever the block is in a file.
    block = b"\n" + block if block.startswith(_BOM) else block
    # Without an end, an empty value that is the last of all takes the quotes of the one before it, and is no null.
    block += b"\n"
    table = pc_csv.read_csv(
        io.BytesIO(block),
        read_options=pc_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=list(names)),
        parse_options=pc_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=None if odd is None else skip),
        convert_options=pc_csv.ConvertOptions(
            column_types=kinds,
            include_columns=None if kinds is None else list(kinds),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    table.validate(full=True)
    return table


def _refused(values: Sequence[bytes], block: bytes, delimiter: str) -> list[Undecodable]:
    """The lines that Arrow's reader must not see. It takes an open quote as closed where the block ends, and so differs
    from block to block; and it ends a line at a carriage return."""
    lines = None
    bad: list[Undecodable] = []
    if b'"' in block:
        lines = pa.array(values, pa.large_binary())
        open_quote = pc.equal(pc.bit_wise_and(pc.count_substring(lines, b'"'), 1), 1)
        why = "a quote in it is not closed (a value can't hold the end of a line)"
        # Also of a line with as many as two: in `5" wide,"two` the first is of the text, and the second opens a value.
        open_value = pc.match_substring_regex(lines, _open_value(delimiter))
        bad += [Undecodable(at, why) for at in pc.indices_nonzero(pc.or_(open_quote, open_value)).to_pylist()]
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n") + block.endswith(b"\r"):
        why = "it has a carriage return within (a value can't hold the end of a line)"
        known = {one.index for one in bad}
        bad += [Undecodable(at, why) for at, line in enumerate(values) if b"\r" in line[:-1] and at not in known]
        bad.sort(key=lambda one: one.index)
    return bad


def _open_value(delimiter: str) -> str:
    """Matches a line whose last value begins with a quote and goes on. A quote is one of the text unless its value
    begins with one, as Arrow reads it."""
    mark = f"\\x{ord(delimiter):02x}"
    value = f'(?:"(?:[^"]|"")*"(?:[^"{mark}][^{mark}]*)?|[^"{mark}][^{mark}]*|)'
    return f'^(?:{value}{mark})*"(?:[^"]|"")*$'


def refuse_values(names: Sequence[str]) -> None:
    """Raise `BadValue` for a line of names that lacks one, or that holds a value: the file has no header then, as it
    seems, and its first record would be lost."""
    nameless = next((number for number, name in enumerate(names, start=1) if not name.strip()), None)
    if nameless is not None:
        raise BadValue(f"column {nameless} in its first line has no name")
    odd = next((name for name in names if _VALUE.match(name)), None)
    if odd is not None:
        raise BadValue(
            f"its first line has {shown(odd)!r}, a value and no name of a column: it has no header, as it seems"
        )


def odd_numbers(texts: pa.Array, kind: pa.DataType) -> bool:
    """Whether Arrow would read some of these as another number than they are written as: hexadecimal ones, integers
    that no float is, and what is beyond all floats."""
    if pt.is_integer(kind):
        return bool(pc.any(pc.invert(pc.match_substring_regex(texts, _INTEGER))).as_py())
    try:
        _check_numbers(pa.chunked_array([pc.ascii_trim_whitespace(texts).cast(kind)]), pa.chunked_array([texts]), "")
    except (BadValue, pa.ArrowInvalid):
        return True
    return False


def _large(column: pa.ChunkedArray) -> Any:
    return large_floats(column.combine_chunks())


def _check_numbers(column: pa.ChunkedArray, texts: pa.ChunkedArray, name: str) -> None:
    if pt.is_floating(column.type):
        refuse_rounded(texts.take(pa.array(_large(column))).to_pylist(), column.type, name)
        return
    odd = texts.filter(pc.invert(pc.match_substring_regex(texts, _INTEGER)))  # a null is neither
    if len(odd):
        raise BadValue(f"{odd[0].as_py()!r} in column {name!r} is not an integer")


def header_of(line: bytes, delimiter: str) -> list[str]:
    """The names in the first line of a CSV file. Raises ``ValueError`` for what can't be one."""
    if line.count(b'"') % 2:
        raise ValueError("a quote in its header is not closed (a name can't hold the end of a line)")
    try:
        names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter), [])
    except csv.Error as error:
        raise ValueError(f"its header can't be read: {error}") from None
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if not names or doubled:
        raise ValueError(f"its header names {doubled} twice" if doubled else "it has no header")
    return names


def blanks_beside(delimiter: str) -> bytes:
    """The blank characters of a line with ``delimiter`` between its values."""
    return BLANKS.replace(delimiter.encode(), b"")
