"""The names of Arrow types, as users write them: ``int64``, ``timestamp[us, UTC]``, ``list<struct<a: int32>>``."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Mapping

import pyarrow as pa

from laketier.config.suggest import did_you_mean
from laketier.spi import ConfigError

_PLAIN: dict[str, Callable[[], pa.DataType]] = {
    "null": pa.null,
    "bool": pa.bool_,
    "boolean": pa.bool_,
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float16,
    "float16": pa.float16,
    "float": pa.float32,
    "float32": pa.float32,
    "double": pa.float64,
    "float64": pa.float64,
    "string": pa.string,
    "utf8": pa.string,
    "large_string": pa.large_string,
    "binary": pa.binary,
    "large_binary": pa.large_binary,
    "date32": pa.date32,
    "date64": pa.date64,
}
_UNITS = {"time": ("s", "ms", "us", "ns"), "time32": ("s", "ms"), "time64": ("us", "ns")}
_DECIMALS = {"decimal": (38, pa.decimal128), "decimal128": (38, pa.decimal128), "decimal256": (76, pa.decimal256)}
_NESTED = ("list", "large_list", "map", "struct")
_PARAMETRIC = ("timestamp", "duration", *_UNITS, "fixed_size_binary", *_DECIMALS, *_NESTED)
_DATE_UNITS = {"date32": "day", "date64": "ms"}  # as Arrow itself prints them
_FIELD = re.compile(r'\s*(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s":<>,()\[\]]+))\s*:')
_NAME = re.compile(r"\s*([A-Za-z_0-9]+)\s*")
_OFFSET = re.compile(r"[+-]\d{2}:\d{2}\Z")
_DEEPEST = 64
_EXAMPLES = "Examples: int64, timestamp[us, UTC], decimal128(10, 2), list<string>, struct<a: int32, b: string>."


def parse_type(text: str, *, key: str, origin: str) -> pa.DataType:
    """The Arrow type that ``text`` names, also as Arrow prints it (``list<item: int64>``, ``timestamp[us, tz=UTC]``).

    ``timestamp`` and ``time`` without a unit are in microseconds; ``float`` has 32 bits, ``double`` 64. Fields are
    nullable unless they end in ``not null``. Driver. Raises `ConfigError` that names ``key`` and ``origin``, with the
    nearest name where one is misspelled.
    """
    parser = _Parser(text, key, origin)
    kind = parser.type()
    if parser.rest.strip():
        raise parser.error(f"{parser.rest.strip()!r} is left over after {kind}")
    return kind


class _Parser:
    """One pass over the text, by recursive descent."""

    def __init__(self, text: str, key: str, origin: str) -> None:
        self.text, self.key, self.origin = text, key, origin
        self.at = 0
        self._depth = 0

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    def error(self, why: str, fix: str = _EXAMPLES) -> ConfigError:
        return ConfigError(f"{self.key} = {self.text!r} is not an Arrow type", where=self.origin, why=why, fix=fix)

    def type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error(f"it is nested deeper than {_DEEPEST} levels")
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.error(f"a type's name is missing at {self.rest[:20]!r}" if self.rest else "a name is missing")
        self.at = match.end()
        kind = self._named(match[1].lower())
        self._depth -= 1
        return kind

    def _named(self, name: str) -> pa.DataType:
        if name in _PLAIN:
            if name in _DATE_UNITS:
                self._unit_of_date(name)
            return _PLAIN[name]()
        if name == "timestamp":
            return self._timestamp()
        if name in _UNITS:
            unit = self._unit(name, self._enclosed("[", "]"), _UNITS[name], default=_UNITS[name][-2])
            return pa.time32(unit) if unit in _UNITS["time32"] else pa.time64(unit)
        if name == "duration":
            return pa.duration(self._unit(name, self._enclosed("[", "]"), _UNITS["time"], default="us"))
        if name == "fixed_size_binary":
            return pa.binary(self._numbers(name, self._enclosed("[", "]"), (1, 2**31 - 1))[0])
        if name in _DECIMALS:
            most, make = _DECIMALS[name]
            precision, scale = self._numbers(name, self._enclosed("(", ")"), (1, most), (0, most))
            if scale > precision:
                raise self.error(f"its scale {scale} is above its precision {precision}")
            return make(precision, scale)
        if name in _NESTED:
            return self._nested(name)
        raise self.error(f"there is no type {name!r}", did_you_mean(name, (*_PLAIN, *_PARAMETRIC)))

    def _timestamp(self) -> pa.DataType:
        unit, _, zone = (self._enclosed("[", "]") or "us").partition(",")
        zone = zone.strip().removeprefix("tz=").strip()
        if zone and zone != "UTC" and not _OFFSET.match(zone) and not _is_zone(zone):
            raise self.error(f"{zone!r} is no time zone", "Use a name such as Europe/Zurich, UTC, or +02:00.")
        return pa.timestamp(self._unit("timestamp", unit.strip(), _UNITS["time"], default="us"), tz=zone or None)

    def _nested(self, name: str) -> pa.DataType:
        self._expect("<", f"{name} needs its parts in < >")
        kind: pa.DataType
        if name == "struct":
            fields = [self._field(named=True)]
            while self._accept(","):
                fields.append(self._field(named=True))
            names = [field.name for field in fields]
            if len(set(names)) < len(names):
                raise self.error("a struct has two fields of one name")
            kind = pa.struct(fields)
        elif name == "map":
            key = self.type()
            self._expect(",", "map needs a key's and a value's type")
            kind = pa.map_(key, self._field(named=False).with_name("value"))
        else:
            kind = (pa.list_ if name == "list" else pa.large_list)(self._field(named=False))
        self._expect(">", f"the > of {name} is missing")
        return kind

    def _field(self, *, named: bool) -> pa.Field:
        match = _FIELD.match(self.text, self.at)
        if match is None and named:
            raise self.error(f"a field's name and colon are missing at {self.rest.strip()[:20]!r}")
        self.at = match.end() if match else self.at
        kind = self.type()
        strict = re.compile(r"\s*not null\s*").match(self.text, self.at)
        self.at = strict.end() if strict else self.at
        return pa.field((match["quoted"] or match["plain"]) if match else "item", kind, nullable=strict is None)

    def _unit_of_date(self, name: str) -> None:
        unit = self._enclosed("[", "]")
        if unit not in ("", _DATE_UNITS[name]):
            raise self.error(f"{name} has no unit {unit!r}")

    def _unit(self, name: str, unit: str, units: tuple[str, ...], *, default: str) -> str:
        if unit and unit not in units:
            raise self.error(f"the unit of {name} is one of {', '.join(units)}, not {unit!r}")
        return unit or default

    def _numbers(self, name: str, inside: str, *bounds: tuple[int, int]) -> list[int]:
        parts = [part.strip() for part in inside.split(",")]
        if len(parts) != len(bounds) or not all(re.fullmatch(r"\d{1,10}", part) for part in parts):
            raise self.error(f"{name} needs {'two numbers' if len(bounds) == 2 else 'a number'}")
        numbers = [int(part) for part in parts]
        for number, (least, most) in zip(numbers, bounds, strict=True):
            if not least <= number <= most:
                raise self.error(f"{number} is not within {least} and {most}")
        return numbers

    def _enclosed(self, opening: str, closing: str) -> str:
        if not self._accept(opening):
            return ""
        end = self.text.find(closing, self.at)
        if end < 0:
            raise self.error(f"the {closing} of {opening}{self.rest[:20]} is missing")
        inside, self.at = self.text[self.at : end].strip(), end + 1
        return inside

    def _accept(self, mark: str) -> bool:
        ahead = self.rest.lstrip()
        if not ahead.startswith(mark):
            return False
        self.at = len(self.text) - len(ahead) + len(mark)
        return True

    def _expect(self, mark: str, why: str) -> None:
        if not self._accept(mark):
            raise self.error(why)


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return True


def parse_columns(columns: Mapping[str, str], *, prefix: str, origin: str) -> pa.Schema | None:
    """The schema of ``columns.<name> = <type>``, in the order given; None where there are none. Raises as
    `parse_type`."""
    fields = [pa.field(name, parse_type(text, key=f"{prefix}{name}", origin=origin)) for name, text in columns.items()]
    return pa.schema(fields) if fields else None
