"""The suite's own asserts: a failure is a sentence that says what was done, expected and found.

``expect`` compares, and tells the difference: of thousands of rows it shows a few. ``refused`` wants an error. A plain
``assert`` is for what is true or not, and has a sentence too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from reprlib import Repr
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from laketier.spi import CommitError, Conflict, Feature, FeatureNotSupported, LaketierError, NotBegun, UnknownOutcome

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")

_CAUSES = 10
"""An error may be its own cause."""
_FEW = 6

_AGAIN = (Conflict, NotBegun, UnknownOutcome)
"""What a caller asks again after, as the answer may be another one then."""


class HarnessFailed(AssertionError):
    """A member of the author's harness ended in an error. No block that wants an error of the format takes it."""


class NotShown(Exception):
    """A declared feature, or what else ``what`` names, can't be shown here, and this is why: the test ends, and the
    report says so."""

    def __init__(self, what: Feature | str, reason: str) -> None:
        super().__init__(f"{what.value if isinstance(what, Feature) else what}: {reason}")


class _Shown(Repr):
    def repr1(self, x: Any, level: int) -> str:
        return f"{type(x).__name__}.{x.name}" if isinstance(x, Enum) else super().repr1(x, level)


_short = _Shown()
_short.maxstring = _short.maxother = 200
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxdict = _short.maxfrozenset = 12
_short.maxlevel = 5


def expect(found: Any, expected: Any, sentence: str) -> None:
    """``found`` equals ``expected``. ``sentence`` says what was done, or what has to hold: "a replay adds no row"."""
    __tracebackhide__ = True
    same = found.equals(expected) if _is_arrow(found) and _is_arrow(expected) else found == expected
    if not same:
        raise AssertionError(f"{sentence}: {difference(found, expected)}")


def the_one(found: Iterable[T], sentence: str) -> T:
    """The only one of some. ``sentence`` says what they are: "the indexes of the table"."""
    __tracebackhide__ = True
    there = list(found)
    if len(there) != 1:
        raise AssertionError(f"{sentence}: expected one, found {len(there)}: {_short.repr(there)}")
    return there[0]


class refused(Generic[E]):  # noqa: N801 - reads as a function: with refused(Conflict, "a stale state is published"):
    """The block ends in one of the errors ``wanted``; the context has it as ``value`` and ``text``. ``doing`` says what
    is done: "a batch without a column that must not be null is written". ``match`` is a pattern in the error's text.

    Any `LaketierError` will do only where it is final. Where another commit, or a fault, came between, `CommitError` is
    wanted beside it.
    """

    value: E

    def __init__(self, wanted: type[E] | tuple[type[E], ...], doing: str, *, match: str | None = None) -> None:
        self._wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        self._doing, self._match = doing, match

    @property
    def text(self) -> str:
        """What the error says."""
        return str(self.value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        __tracebackhide__ = True
        names = " or ".join(each.__name__ for each in self._wanted)
        if error is None:
            raise AssertionError(f"{self._doing}: expected {names}, and no error was raised")
        if isinstance(error, HarnessFailed):
            return False
        if isinstance(error, FeatureNotSupported) and FeatureNotSupported not in self._wanted:
            return False  # the run judges a refusal of what is declared unsupported, also where any error would do
        if isinstance(error, _AGAIN) and LaketierError in self._wanted and CommitError not in self._wanted:
            raise AssertionError(f"{self._doing}: {_final(error)}") from error
        if isinstance(error, self._wanted):
            self.value = error
            if self._match is None or re.search(self._match, str(error)):
                return True
            names += f" with {self._match!r} in its text"
        elif not isinstance(error, Exception):
            return False  # an interrupt
        raise AssertionError(f"{self._doing}: expected {names}, found {told(error)}") from error


def _final(error: Exception) -> str:
    return f"expected a final error, as another try would end in the same way, found {told(error)}"


def is_final(error: LaketierError, doing: str) -> None:
    """``error`` is none that a caller asks again after: nobody else was there, and another try would end so as well."""
    __tracebackhide__ = True
    if isinstance(error, _AGAIN):
        raise AssertionError(f"{doing}: {_final(error)}") from error  # noqa: TRY004 - of a format


@contextmanager
def ends_for_good(doing: str) -> Iterator[None]:
    """The block goes well, or ends in a final error of the format: nobody else was there, so nobody could be first.
    ``doing`` says what is done: "a table is created"."""
    __tracebackhide__ = True
    try:
        yield
    except _AGAIN as error:
        raise AssertionError(f"{doing}: {_final(error)}") from error


@contextmanager
def goes_well(doing: str, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """The block ends in no error of the format, ``but`` one of these. ``doing`` says what is done, after what: "a table
    is read after orphans were collected". For calls whose failure tells of a mistake that came before."""
    __tracebackhide__ = True
    # A sentence already, or for the test or the run to judge.
    others: tuple[type[Exception], ...] = (AssertionError, NotShown, FeatureNotSupported, *but)
    try:
        yield
    except others:
        raise
    except Exception as error:
        raise AssertionError(f"{doing}: expected no error, found {told(error)}{because(error)}") from error


def cause_of(error: BaseException) -> BaseException | None:
    """What it was raised from, as a traceback tells it: ``from None`` hides what came before."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def because(error: BaseException) -> str:
    """What an error came of first, for the end of a sentence that tells it."""
    cause = error
    for _ in range(_CAUSES):
        cause = cause.__cause__ or cause
    return "" if cause is error else f", because of {told(cause)}"


def shown(value: object) -> str:
    """A value of any kind, in few words."""
    return "None" if value is None else f"{_short.repr(value)} ({type(value).__name__})"


def told(error: BaseException) -> str:
    """An error in a line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}({lines[0][:300]})" if lines else type(error).__name__


def difference(found: Any, expected: Any) -> str:
    """What is expected, what was found, and where they differ: in one line, however large they are."""
    if isinstance(found, pa.RecordBatch):
        found = pa.Table.from_batches([found])
    if isinstance(expected, pa.RecordBatch):
        expected = pa.Table.from_batches([expected])
    if isinstance(found, pa.Table) and isinstance(expected, pa.Table):
        if found.schema != expected.schema:
            return f"expected the columns {columns(expected.schema)}, found {columns(found.schema)}"
        return of_rows(found.to_pylist(), expected.to_pylist())
    if isinstance(found, pa.Schema) and isinstance(expected, pa.Schema):
        return f"expected the columns {columns(expected)}, found {columns(found)}"
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        return _of_keys(found, expected)
    if isinstance(found, set | frozenset) and isinstance(expected, set | frozenset):
        return _parts(_given(expected, found), missing=_sorted(expected - found), extra=_sorted(found - expected))
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple) and max(len(found), len(expected)) > _FEW:
        return of_rows(list(found), list(expected))
    return _given(expected, found)


def columns(schema: pa.Schema) -> str:
    """Names and types of a schema in a line."""
    return ", ".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)


def of_rows(found: list[Any], expected: list[Any]) -> str:
    """Which rows are missing, doubled or too many: of thousands a few."""
    wanted, there = Counter(map(repr, expected)), Counter(map(repr, found))
    missing = [row for row in wanted if row not in there]
    doubled = [row for row, count in there.items() if row in wanted and count > wanted[row]]
    fewer = [row for row, count in wanted.items() if row in there and there[row] < count]
    extra = [row for row in there if row not in wanted]
    begun = f"expected {len(expected)} rows, found {len(found)}"
    if not (missing or doubled or fewer or extra):
        first = next((at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None)
        if first is None:
            return f"{begun} that look the same and are not equal"
        return f"{begun} in another order: row {first} is {_short.repr(found[first])}"
    return _parts(begun, missing=missing, doubled=doubled, fewer=fewer, extra=extra)


def _of_keys(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    missing = [repr(key) for key in expected if key not in found]
    extra = [repr(key) for key in found if key not in expected]
    other = [key for key in expected if key in found and found[key] != expected[key]]
    if max(len(found), len(expected)) <= _FEW and not other:
        return _given(expected, found)
    shown = [f"{key!r} is {_short.repr(found[key])}, expected {_short.repr(expected[key])}" for key in other]
    return _parts(f"expected {len(expected)} entries, found {len(found)}", missing=missing, extra=extra, other=shown)


_SAY = {
    "missing": "missing",
    "doubled": "there more often than expected",
    "fewer": "there less often than expected",
    "extra": "not expected",
    "other": "other than expected",
}


def _parts(begun: str, **parts: Collection[str]) -> str:
    said = [
        f"{len(each)} {'is' if len(each) == 1 else 'are'} {_SAY[how]}: {_few(each)}"
        for how, each in parts.items()
        if each
    ]
    return f"{begun}; {', '.join(said)}" if said else begun


def _given(expected: Any, found: Any) -> str:
    shown, seen = _short.repr(expected), _short.repr(found)
    if shown == seen:
        shown, seen = f"{shown} ({type(expected).__name__})", f"{seen} ({type(found).__name__})"
    return f"expected {shown}, found {seen}"


def _few(items: Collection[str]) -> str:
    shown = [item if len(item) <= 120 else f"{item[:117]}..." for item in list(items)[:_FEW]]
    return f"[{', '.join(shown)}{', ...' if len(items) > _FEW else ''}]"


def _sorted(items: Iterable[Any]) -> list[str]:
    return sorted(map(repr, items))


def _is_arrow(value: Any) -> bool:
    return isinstance(
        value, pa.Table | pa.RecordBatch | pa.Schema | pa.Field | pa.DataType | pa.Array | pa.ChunkedArray
    )
