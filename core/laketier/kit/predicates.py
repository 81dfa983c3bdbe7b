"""Predicates as text: versioned JSON with typed literals. For predicates that are stored or cross processes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from laketier.spi.errors import SerializationError
from laketier.spi.literals import nanoseconds_of
from laketier.spi.predicate import MOST_DEPTH, And, Leaf, Not, Op, Or, Predicate

VERSION = 1
_MOST_DIGITS = 76
"""Of an integer or a decimal: what Arrow's widest decimal holds."""
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_NULL_TESTS = (Op.IS_NULL, Op.NOT_NULL)


def predicate_to_json(predicate: Predicate) -> str:
    """Canonical JSON: equal predicates have equal text, on any Python. Raises `SerializationError` for a literal that
    no column of a table can hold, and for a predicate that is nested more than `MOST_DEPTH` deep."""
    document = {"version": VERSION, "predicate": _plain(predicate, 1)}
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def predicate_from_json(text: str | bytes) -> Predicate:
    """Undo `predicate_to_json`. Moments in a zone come back in UTC. Raises `SerializationError` for another version and
    for anything that `predicate_to_json` does not write."""
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_float=_no_number, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise SerializationError("a predicate is not JSON", why=f"{type(error).__name__}: {error}") from error
    if not isinstance(document, dict) or document.keys() != {"version", "predicate"}:
        raise SerializationError("a predicate is not a document with a version and a predicate")
    if type(document["version"]) is not int or document["version"] != VERSION:
        raise SerializationError(
            f"a predicate has version {document['version']!r}, and this laketier reads version {VERSION}",
            fix="Read it with the laketier that wrote it, or a newer one.",
        )
    return _predicate(document["predicate"], 1)


def _plain(predicate: Predicate, depth: int) -> dict[str, Any]:
    _check_depth(depth)
    match predicate:
        case And(children=children) | Or(children=children) if children:
            op = "and" if isinstance(predicate, And) else "or"
            return {"op": op, "children": [_plain(child, depth + 1) for child in children]}
        case Not(child=child):
            return {"op": "not", "child": _plain(child, depth + 1)}
        case Leaf(column=str() as column, op=Op() as op, value=value):
            leaf = {"op": op.value, "column": _text(column)}
            if op in _NULL_TESTS:
                return leaf
            if op is Op.IN:
                return leaf | {"values": [_literal(item) for item in value]}
            return leaf | {"value": _literal(value)}
    raise SerializationError(f"{predicate!r:.200} is no predicate with a serialised form")


def _predicate(plain: Any, depth: int) -> Predicate:
    _check_depth(depth)
    match plain:
        case {"op": "and" | "or" as op, "children": [_, *_] as children} if len(plain) == 2:
            made = tuple(_predicate(child, depth + 1) for child in children)
            return And(made) if op == "and" else Or(made)
        case {"op": "not", "child": child} if len(plain) == 2:
            return Not(_predicate(child, depth + 1))
        case {"op": str() as op, "column": str() as column, **rest} if op in _OPS:
            return Leaf(_text(column), _OPS[op], _operand(_OPS[op], {str(key): rest[key] for key in rest}))
    raise SerializationError(f"{plain!r:.200} is no predicate")


def _operand(op: Op, rest: dict[str, Any]) -> Any:
    match rest:
        case {} if op in _NULL_TESTS and not rest:
            return None
        case {"values": list() as values} if op is Op.IN and len(rest) == 1:
            return tuple(_value(item) for item in values)
        case {"value": value} if op not in (*_NULL_TESTS, Op.IN) and len(rest) == 1:
            return _value(value)
    raise SerializationError(f"{rest!r:.200} is nothing that {op.value!r} compares with")


def _literal(value: Any) -> dict[str, Any] | None:
    """The value under the name of its type. In this order, as a bool is an int, and a datetime a date."""
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if value is None:
        return None
    for kind, name in _NAMES.items():
        if isinstance(value, kind):
            try:
                return {name: _WRITTEN[name](value)}
            except (ValueError, OverflowError) as error:  # pandas' NaT, a moment that is in no year by UTC
                raise SerializationError(f"{value!r:.200} is no {name}", why=str(error)) from error
    raise SerializationError(
        f"a literal of type {type(value).__name__} has no serialised form",
        fix=f"Use a value of Python's own types: {', '.join(kind.__name__.lower() for kind in _NAMES)}.",
    )


def _value(plain: Any) -> Any:
    if plain is None:
        return None
    if not isinstance(plain, dict) or len(plain) != 1:
        raise SerializationError(f"{plain!r:.200} is no literal")
    [(name, text)] = plain.items()
    if name not in _READ or type(text) is not (bool if name == "bool" else str):
        raise SerializationError(f"{plain!r:.200} is no literal of a type that is known")
    try:
        value = _READ[name](text)
        canonical = _WRITTEN[name](value)
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowException) as error:
        raise SerializationError(f"{text!r:.200} is no {name}", why=str(error)) from error
    if canonical != text:
        raise SerializationError(f"{text!r:.200} is not how a {name} is written", why=f"that is {canonical!r:.200}")
    return value


# -- literals ---------------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    """Half of a surrogate pair is no text, and Arrow takes none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SerializationError(f"{text!r:.200} is no Unicode text", why=str(error)) from error
    return str(text)


def _integer(value: int) -> str:
    if abs(value) >= 10**_MOST_DIGITS:
        raise SerializationError(f"an integer has more than {_MOST_DIGITS} digits")
    return str(int(value))


def _integer_from(text: str) -> int:
    return int(_short(text))


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) > _MOST_DIGITS or abs(exponent) > _MOST_DIGITS:
        raise SerializationError(f"{value!r:.200} is no decimal that a column can hold")
    return str(value)


def _decimal_from(text: str) -> Decimal:
    return Decimal(_short(text))


def _short(text: str) -> str:
    if len(text) > 2 * _MOST_DIGITS:
        raise ValueError(f"it has more than {_MOST_DIGITS} digits")
    return text


def _timestamp(value: datetime) -> str:
    """Nanoseconds since the epoch, by UTC for a moment in a zone: ``Z`` tells it from a local one."""
    zoned = value.tzinfo is not None
    if zoned:
        value.astimezone(UTC)  # which reading gives: it fails here where UTC has another year than Python knows
    return f"{nanoseconds_of(value)}{'Z' if zoned else ''}"


def _timestamp_from(text: str) -> datetime:
    nanoseconds, zone = int(_short(text.removesuffix("Z"))), UTC if text.endswith("Z") else None
    if nanoseconds % 1000 == 0:
        return (_EPOCH + nanoseconds // 1000 * _MICROSECOND).replace(tzinfo=zone)
    scalar: datetime = pa.scalar(nanoseconds, pa.timestamp("ns", "UTC" if zone else None)).as_py()
    return scalar


def _duration(value: timedelta) -> str:
    """Nanoseconds, as a pandas Timedelta has them."""
    return str(
        (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000 + getattr(value, "nanoseconds", 0)
    )


def _duration_from(text: str) -> timedelta:
    nanoseconds = int(_short(text))
    if nanoseconds % 1000 == 0:
        return nanoseconds // 1000 * _MICROSECOND
    scalar: timedelta = pa.scalar(nanoseconds, pa.duration("ns")).as_py()
    return scalar


def _time(value: time) -> str:
    if value.tzinfo is not None:
        raise SerializationError("a time of day has a zone, which no column holds", fix="Leave the zone out.")
    return value.isoformat()


_NAMES: Mapping[type, str] = {
    bool: "bool",
    Integral: "int",  # also numpy's
    Real: "float",
    str: "string",
    bytes: "binary",
    Decimal: "decimal",
    datetime: "timestamp",
    date: "date",
    time: "time",
    timedelta: "duration",
}
_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": _integer,
    "float": lambda value: float(value).hex(),
    "string": _text,
    "binary": lambda value: base64.b64encode(value).decode("ascii"),
    "decimal": _decimal,
    "timestamp": _timestamp,
    "date": lambda value: value.isoformat(),
    "time": _time,
    "duration": _duration,
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": _integer_from,
    "float": float.fromhex,
    "string": str,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "decimal": _decimal_from,
    "timestamp": _timestamp_from,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "duration": _duration_from,
}
_OPS = {op.value: op for op in Op}


def _check_depth(depth: int) -> None:
    if depth > MOST_DEPTH:
        raise SerializationError(f"a predicate is nested more than {MOST_DEPTH} deep")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text[:40]} is there, and literals are text")
