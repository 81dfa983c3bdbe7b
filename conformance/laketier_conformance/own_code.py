"""The code of our suites, as it was written. What a conftest.py or another plugin of pytest puts in its place answers
for the format or the source, so each test looks for it before and after."""

from __future__ import annotations

import functools
import inspect
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

_HERE = Path(__file__).parent
PACKAGES = (_HERE.name, "laketier_source_conformance")
_PLACES = tuple(_HERE.with_name(package) for package in PACKAGES)
_DEFINED = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_METHODS = re.compile(r"^    (?:async )?def (\w+)", re.MULTILINE)
_IMPORTED = re.compile(r"^from (laketier_(?:source_)?conformance[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_LEAVE = "leave the suite's code as it is"


class _Part(NamedTuple):
    """A function or a class of the suite, and its name in a module or a class, ``where``. ``code``: of a function."""

    where: str
    names: Any
    name: str
    value: Any
    function: Any
    code: CodeType | None


class _Names(NamedTuple):
    """The parts that one module or class names, in columns: each test asks twice of thousands, so no line of Python
    goes over them one by one."""

    parts: list[_Part]
    look: Callable[[str], Any]
    names: list[str]
    values: list[Any]
    functions: list[Any]
    codes: list[CodeType]

    def are_whole(self) -> bool:
        """Whether each name stands for its part still, and each function has its code."""
        return all(map(operator.is_, map(self.look, self.names), self.values)) and all(
            map(operator.is_, map(_CODE, self.functions), self.codes)
        )


_CODE = operator.attrgetter("__code__")
_WHOLE: list[_Names] = []
_MODULES: set[str] = set()
"""Those that were looked at."""


def is_ours(path: Path) -> bool:
    """Whether a file is one of the suite of formats."""
    return path.is_relative_to(_HERE)


def is_of_a_suite(path: Path) -> bool:
    """Whether a file is one of the suite of formats, or of that of sources."""
    return any(path.is_relative_to(place) for place in _PLACES)


def replaced() -> str | None:
    """The first part of the suite for which something else stands, in a sentence; None where each is its own."""
    for name, module in list(sys.modules.items()):
        if name not in _MODULES and name.startswith(PACKAGES):
            _MODULES.add(name)
            if (wrong := next(_foreign(module), None)) is not None:
                _MODULES.discard(name)  # it may be put back, and be looked at again
                return wrong
    for those in _WHOLE:
        if not those.are_whole():
            return next(f"{part.where}.{part.name} was replaced: {_LEAVE}" for part in those.parts if _is_other(part))
    return None


def _is_other(part: _Part) -> bool:
    if part.names.get(part.name) is not part.value:
        return True
    return part.code is not None and part.function.__code__ is not part.code


@contextmanager
def really_called(item: pytest.Function) -> Iterator[None]:
    """A test that passes is the suite's own, was called, and called the suite's own functions: a hook of somebody
    else's may answer in its place."""
    function, calls = item.obj, 0
    if not is_of_a_suite(Path(inspect.unwrap(function).__code__.co_filename)):
        pytest.fail(f"the function of this test was replaced by one that is not of the suite: {_LEAVE}")

    @functools.wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        _is_whole()
        return function(*arguments, **named)

    item.obj = counted
    try:
        yield
    finally:
        item.obj = function
    if not calls:
        pytest.fail(
            "the function of this test was never called: a conftest.py or another plugin of pytest took its place"
        )
    _is_whole()


def _is_whole() -> None:
    if (wrong := replaced()) is not None:
        pytest.fail(wrong)


def _foreign(module: ModuleType) -> Iterator[str]:
    """What stands in a module for something of the suite. The rest of it is kept in mind."""
    file = Path(module.__file__ or "")
    if not is_of_a_suite(file) or not file.is_file():
        return
    source, names, parts = inspect.getsource(module), vars(module), list[_Part]()
    methods = set(_METHODS.findall(source))
    for name in dict.fromkeys(_DEFINED.findall(source)):
        if name not in names:
            continue  # of another system
        found = names[name]
        if not isinstance(found, type):
            parts.append(_part(module.__name__, names, name))
        elif found.__module__ == module.__name__:
            parts.append(_Part(module.__name__, names, name, found, None, None))
            parts += [_part(f"{module.__name__}.{name}", vars(found), each) for each in vars(found) if each in methods]
        else:
            yield f"{module.__name__}.{name} was replaced by a class of {found.__module__}: {_LEAVE}"
    for part in parts:
        if part.code is not None and part.code.co_filename not in (str(file), "<string>"):
            yield f"{part.where}.{part.name} was replaced by a function of {part.code.co_filename}: {_LEAVE}"
        if part.code is None and not isinstance(part.value, type):
            yield f"{part.where}.{part.name} was replaced by {part.value!r}: {_LEAVE}"
    for home, several, one in _IMPORTED.findall(source):
        for each in (several or one.partition("#")[0]).replace("\n", " ").split(","):
            name, _, other = (word.strip() for word in each.partition(" as "))
            if name and names.get(other or name) is not getattr(sys.modules[home], name):
                yield f"{module.__name__}.{other or name} is not that of {home}: {_LEAVE}"
            elif name:
                parts.append(_Part(module.__name__, names, other or name, names[other or name], None, None))
    by_place = defaultdict(list)
    for part in parts:
        by_place[part.where].append(part)
    _WHOLE.extend(map(_in_columns, by_place.values()))


def _in_columns(parts: list[_Part]) -> _Names:
    functions = [part for part in parts if part.code is not None]
    return _Names(
        parts,
        parts[0].names.get,
        [part.name for part in parts],
        [part.value for part in parts],
        [part.function for part in functions],
        [part.code for part in functions if part.code is not None],
    )


def _part(where: str, names: Any, name: str) -> _Part:
    value = names[name]
    function: Any = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    function = inspect.unwrap(getattr(function, "func", function))
    is_one = isinstance(function, FunctionType)
    return _Part(where, names, name, value, function, function.__code__ if is_one else None)
