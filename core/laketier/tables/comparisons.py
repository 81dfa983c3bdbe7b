"""One comparison as text, as people write it: ``total >= 10``. For commands and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.config.suggest import did_you_mean
from laketier.spi import ConfigError, Leaf, Op

_OPERATORS = r"<=|>=|!=|<>|==|=>|=<|=|<|>|\bis\s+not\s+null\b|\bis\s+null\b|\bin\b|\bstarts\s+with\b"
_REST = rf"\s*(?P<op>{_OPERATORS})\s*(?P<value>.*?)\s*\Z"
_FILTER = re.compile(rf"\s*(?P<column>.+?){_REST}", re.IGNORECASE | re.DOTALL)
_SPELLINGS = {"==": "=", "<>": "!=", "=>": ">=", "=<": "<="}
_QUOTED = re.compile(r"""\s*(?:'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)")\s*""", re.DOTALL)
_BARE = re.compile(r"[^,'\"]*")
_MORE = re.compile(r"(?i)\s(?:and|or)\s|[<>=]")
_EXAMPLE = "For example `total >= 10`, `region in ('eu', 'us')` or `paid is null`."


def parse_filter(text: str, schema: pa.Schema, *, option: str = "--where") -> Leaf:
    """Read ``column op value``, with the value typed by the column. ``option`` is how the text was given, for messages.
    Raises `ConfigError`."""
    where = f"{option} {text!r}"
    match = _of_a_column(text, schema) or _FILTER.match(text)
    if match is None:
        raise ConfigError("the text is no comparison", where=where, why=f"it has none of {_known()}", fix=_EXAMPLE)
    column, spelling = match["column"], " ".join(match["op"].lower().split())
    op = Op(_SPELLINGS.get(spelling, spelling))
    index = schema.get_field_index(column)
    if index < 0:
        near = did_you_mean(column, schema.names)
        fix = f"The columns are {', '.join(schema.names)}."
        raise ConfigError(f"there is no column {column!r}", where=where, fix=f"{near} {fix}" if near else fix)
    if op in (Op.IS_NULL, Op.NOT_NULL):
        if match["value"]:
            raise _too_much(match["value"], where)
        return Leaf(column, op)
    kind = schema.field(index).type
    if op is Op.IN:
        return Leaf(column, op, tuple(_typed(item, kind, where) for item in _items(match["value"], where)))
    return Leaf(column, op, _typed(_one(match["value"], where), kind, where))


def _of_a_column(text: str, schema: pa.Schema) -> re.Match[str] | None:
    """The comparison of the longest name that the text begins with: a name may hold an operator (``Check In``)."""
    for name in sorted(schema.names, key=len, reverse=True):
        match = re.match(rf"\s*(?P<column>{re.escape(name)})(?!\w){_REST}", text, re.IGNORECASE | re.DOTALL)
        if name and match is not None and match["column"] == name:
            return match
    return None


def _one(text: str, where: str) -> str:
    """A value: quoted, with a quote inside written twice, or bare."""
    quoted = _QUOTED.match(text)
    if quoted is not None:
        if quoted.end() != len(text):
            raise _too_much(text[quoted.end() :], where)
        return _unquoted(quoted)
    if _MORE.search(text):
        raise _too_much(text, where)
    if not text:
        raise ConfigError("the value is missing", where=where, fix=f"An empty text is ''. {_EXAMPLE}")
    if text.lower() == "null":
        raise ConfigError("nothing is equal to null", where=where, fix="Write is null or is not null, or quote 'null'.")
    return text


def _items(text: str, where: str) -> Iterator[str]:
    inner = text[1:-1] if text[:1] + text[-1:] in ("()", "[]") else text
    at = 0
    while True:
        quoted = _QUOTED.match(inner, at)
        bare = _BARE.match(inner, at)
        found = quoted or bare
        assert found is not None
        if quoted is None and not found[0].strip():
            raise ConfigError("a value of the list is missing", where=where, fix=_EXAMPLE)
        yield _unquoted(quoted) if quoted else _one(found[0].strip(), where)
        at = found.end()
        if at == len(inner):
            return
        if inner[at] != ",":
            raise _too_much(inner[at:], where)
        at += 1


def _unquoted(quoted: re.Match[str]) -> str:
    if quoted["single"] is not None:
        return quoted["single"].replace("''", "'")
    return quoted["double"].replace('""', '"')


def _typed(value: str, kind: pa.DataType, where: str) -> Any:
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        if pt.is_nested(kind):
            raise ConfigError(f"a column of type {kind} can't be compared", where=where, fix="Name another.") from error
        raise ConfigError(f"{value!r} is not {kind}", where=where, fix=_form(kind)) from error


def _form(kind: pa.DataType) -> str | None:
    if pt.is_timestamp(kind):
        return f"Write it as 2026-11-22T06:00:00{'' if kind.tz is None else 'Z'}."
    if pt.is_date(kind):
        return "Write it as 2026-11-22."
    if pt.is_boolean(kind):
        return "Write true or false."
    return None


def _too_much(text: str, where: str) -> ConfigError:
    return ConfigError(
        f"there is more than one comparison: {text.strip()!r}",
        where=where,
        fix="Give each by itself (all must hold), and quote a text that has such words or signs in it.",
    )


def _known() -> str:
    return ", ".join(op.value for op in Op)
