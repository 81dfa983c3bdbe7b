"""Rows that text, folders, processes and type mappings lose easily: odd names, odd partition values, odd values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pyarrow as pa

from laketier.spi import And, Feature, LaketierError, Leaf, Op, Or, PartitionField, Predicate
from laketier_conformance.expect import told
from laketier_conformance.lake import Lake

_NAN = float("nan")
_MOMENT = datetime(2026, 11, 21, 8, 30, 15, 123456)
_OLD = datetime(1969, 12, 31, 23, 59, 59, 999999)
KEYS = ("A", "a", " a", "a b", "a/b", "a%2Fb", "\u00e9\U0001f986", None)
"""Neighbours become one where a format folds, trims or escapes twice. Every format has to hold them."""
UNPRESSED = "".join(sha256(bytes([number])).hexdigest() for number in range(64))
"""4,096 letters that hardly compress: an index of a database has keys of 767 to 3,072 bytes, and compresses some."""
KEY, FLOAT, TEXT = "key", "float", "text"
_ITEM = pa.struct([("n", pa.int64()), ("t", pa.string())])
_COLUMNS: dict[str, tuple[str, pa.DataType, Sequence[Any]]] = {
    KEY: ("Mixed Key", pa.string(), KEYS),
    TEXT: ("a.b", pa.string(), ("x", "", "it's", '"q" `b`', "%", "null", None, "\u65e5\u672c\n")),
    FLOAT: ("A B", pa.float64(), (1.5, _NAN, -0.0, 0.0, float("inf"), float("-inf"), 5e-324, None)),
    "decimal": ("it's", pa.decimal128(18, 6), (*map(Decimal, ("-0.000001", "123456789012.345678", "0.000000")), None)),
    "ntz": ('"q"', pa.timestamp("us"), (_MOMENT, _OLD, None)),
    "moment": ("a/b", pa.timestamp("us", "UTC"), (_MOMENT.replace(tzinfo=UTC), _OLD.replace(tzinfo=UTC), None)),
    "day": ("\u65e5\u672c", pa.date32(), (date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None)),
    "bytes": ("`c`", pa.binary(), (b"", b"\x00\xff", None)),
    "list": ("a=b", pa.list_(pa.field("element", _ITEM)), ([{"n": 1, "t": None}, None], [], None)),
    "struct": ("Item", pa.struct([("a", _ITEM), ("b", pa.float64())]), ({"a": {"n": 1, "t": ""}, "b": -0.0}, None)),
}
"""By its plain name: the odd one, the type, and the values that follow one another."""
_NESTED = ("list", "struct")


@dataclass(frozen=True)
class OddRows:
    """What a format takes: ``names`` has the names of its columns by the plain ones."""

    names: Mapping[str, str]
    partitioned: bool

    def batch(self, ids: Sequence[int]) -> pa.RecordBatch:
        """Everything follows from the id: rows of two different ids below 64 are alike in few columns."""
        arrays = [pa.array(ids, pa.int64())]
        for place, plain in enumerate(self.names):
            _, kind, values = _COLUMNS[plain]
            turned = [i if plain == KEY else i + i // 8 * place for i in ids]
            arrays.append(pa.array([values[i % len(values)] for i in turned], kind))
        return pa.record_batch(arrays, names=["id", *self.names.values()])

    def predicates(self) -> list[Predicate]:
        """On the partition column, a name with a dot and a value with quotes, and NaN, which is in no range."""
        key, text, number = (self.names[plain] for plain in (KEY, TEXT, FLOAT))
        naive = [Leaf(self.names["ntz"], Op.EQ, _OLD)] if "ntz" in self.names else []
        return [
            Leaf(key, Op.EQ, "a%2Fb"),
            Leaf(key, Op.IN, ("A", "a ", "\u00e9\U0001f986")),
            Leaf(key, Op.IS_NULL),
            Leaf(text, Op.EQ, '"q" `b`'),
            Leaf(number, Op.GT, 0),
            *naive,
        ]

    def any_of(self) -> Predicate:
        """A filter by several columns at once, each of which has rows that no other has."""
        key, text, number = (self.names[plain] for plain in (KEY, TEXT, FLOAT))
        small = And((Leaf(number, Op.GT, 0), Leaf(number, Op.LT, 1)))
        return Or((Leaf(key, Op.EQ, "a%2Fb"), Leaf(text, Op.EQ, '"q" `b`'), small))


def odd_rows(lake: Lake) -> OddRows:
    """What the format takes of it, tried on a table of its own: a column whose name it refuses gets its plain name,
    and one whose type it refuses is left out."""
    nested = lake.declares(Feature.NESTED_TYPES)
    names = {plain: odd for plain, (odd, _, _) in _COLUMNS.items() if nested or plain not in _NESTED}
    partitioned = lake.declares(Feature.PARTITIONING)
    while True:
        rows = OddRows(dict(names), partitioned)
        refusal = _refusal(lake, rows)
        if refusal is None:
            return rows
        said = str(refusal)
        named = [plain for plain, name in names.items() if f"'{name}'" in said or repr(name) in said]
        assert named, f"one of the columns {list(names.values())} is refused, and not named: {told(refusal)}"
        for plain in named:
            kept = plain in (KEY, TEXT, FLOAT) and names[plain] == plain
            assert not kept, f"every format has to hold a column {plain!r}: {told(refusal)}"
            if names[plain] == plain:
                del names[plain]
            else:
                names[plain] = plain


def _refusal(lake: Lake, rows: OddRows) -> LaketierError | None:
    by = (PartitionField(rows.names[KEY]),) if rows.partitioned else ()
    try:
        lake.create(rows.batch([0]).schema, "db.asked", partition_by=by)
    except LaketierError as error:
        return error
    return None


def by_id(rows: pa.Table) -> dict[int, list[str]]:
    """The values of each row as Python spells them: NaN equals NaN, zeros keep their sign, moments are numbers."""
    columns = []
    for column in rows.columns:
        moments = pa.types.is_timestamp(column.type)
        plain = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()) if moments else column
        columns.append(map(repr, plain.to_pylist()))
    found: dict[int, list[str]] = {}
    for number, values in zip(rows["id"].to_pylist(), zip(*columns, strict=True), strict=True):
        found.setdefault(number, []).extend(values)
    return found
