"""How far back a plugin looks, told by the numbers in its own code.

A history of ten thousand commits takes too long to be made for each format. Where a search ends is a number in the
code, though: ``LIMIT 10000``, ``islice(commits, 1000)``, ``ids[-1000:]``, an option. So each number that is greater
than the histories of the suite is made small in its turn, and a short history does. What a number ends in that way is a
suspicion only, as a number may be anything. The test then makes a history that is as long.
"""

from __future__ import annotations

import dataclasses
import enum
import gc
import itertools
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import CodeType, FrameType, FunctionType, MappingProxyType
from typing import Any

from laketier.spi import CommitterInitContext, Watermark, WriteResult, new_attempt_id, unpack
from laketier_conformance.harness import Harness
from laketier_conformance.host_clocks import packages
from laketier_conformance.lake import Lake, Table, token

FEW, SMALL, LARGER = 5, 2, 12
"""A commit that lies ``FEW`` back is beyond a bound of ``SMALL``, and within one of ``LARGER``."""
_MODES = {0o600, 0o640, 0o644, 0o660, 0o666, 0o700, 0o750, 0o755, 0o770, 0o777}
"""Of files and folders: nobody could clean up what another mode leaves."""
_IN_TEXT = re.compile(r"(?<![\w.])\d{3,12}(?![\w.])")
_SECONDS, _ALL_SECONDS = 20.0, 60.0
"""A loop may have no end with another number. A slow format may have many of them, and who asks waits for 2 minutes."""
_names = itertools.count()
Change = Callable[[int], int]


def foreign_commits(
    table: Table, numbers: range, rows: Mapping[int, int] = MappingProxyType({}), pipelines: int = 3
) -> None:
    """Empty epochs of other pipelines, and a batch of none after every ninth: the cheapest that there are. Those whose
    number ``rows`` has are of one row, which has that id."""
    factory = table.factory
    for number in numbers:
        commit = new_attempt_id()
        messages = [table.stage([rows[number]], factory=factory)] if number in rows else []
        staged: list[WriteResult] = [unpack(factory.write_result_serializer, message) for message in messages]
        committer = factory.create_committer(CommitterInitContext(commit_id=commit))
        mark = (
            None if number % 10 == 9 else Watermark(token(number // pipelines, f"other {number % pipelines}"), commit)
        )
        committer.publish(committer.open(), staged, mark)
        committer.close()


def bounds(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Of a child. The numbers greater than ``above`` that seem to be as far as a watermark or a commit is looked for,
    each with its place in the code; and how many were ``left`` when the time was over."""
    above: int = request["above"]
    seen: dict[int, CodeType] = {}
    harness = Harness.of(lake.format)
    own = packages(lake.create(name="db.own"), harness) - {*harness.engine_modules}
    with _seen(seen, own):
        known = _remembers(lake, FEW)
    if not known:
        return {"bounds": [], "left": 0}  # other tests tell
    code = _Code(lake, own, [each for each in _functions(seen) if _numbers(each, above)])
    left: list[int] = []
    guilty = list(_guilty(code, sorted(code.numbers(above)), left, time.monotonic() + _ALL_SECONDS))
    return {"bounds": [[number, code.place(number)] for number in guilty], "left": len(left)}


def _guilty(code: _Code, numbers: Collection[int], left: list[int], until: float) -> Iterator[int]:
    """The numbers of some that end a search: found by halves, as most change nothing. ``left``: takes those that are
    not looked at any more, from ``until`` on."""
    some = list(numbers)
    if some and time.monotonic() > until:
        left += some
        return
    if not some or code.remembers(dict.fromkeys(some, SMALL), FEW):
        return
    if len(some) > 1:
        yield from _guilty(code, some[: len(some) // 2], left, until)
        yield from _guilty(code, some[len(some) // 2 :], left, until)
        return
    # Within a greater bound it is found, and not where the history is longer than that, too.
    answers = (({some[0]: SMALL}, FEW, False), ({some[0]: LARGER}, FEW, True), ({some[0]: LARGER}, LARGER + FEW, False))
    if all(code.remembers(smaller, since) is answer for smaller, since, answer in answers):
        yield some[0]


def _remembers(lake: Lake, since: int) -> bool | None:
    """Whether a pipeline's commit and one of none are found behind some of others. None: an error, which is no wrong
    answer."""
    try:
        table = lake.create(name=f"db.bounds_{next(_names)}")
        commits = [new_attempt_id(), new_attempt_id()]
        for commit, mark in zip(commits, (Watermark(token(0), commits[0]), None), strict=True):
            committer = table.committer(commit_id=commit)
            committer.publish(committer.open(), [], mark)
            committer.close()
        foreign_commits(table, range(since))
        committer = table.committer()
        state = committer.open()
        found = state.watermark("p") is not None and all(map(state.landed, commits))
        committer.close()
    except Exception:  # noqa: BLE001 - of any kind, as another number may break anything
        return None
    return found


class _Code:
    """The plugin's own code, whose numbers can be made small for a while."""

    def __init__(self, lake: Lake, own: Collection[str], functions: Collection[FunctionType]) -> None:
        self._lake, self._functions = lake, functions
        self._named = [*_named(own)]
        self._options = _options(lake)

    def numbers(self, above: int) -> set[int]:
        """All of them that are greater than ``above``."""
        found = {number for function in self._functions for number in _numbers(function, above)}
        for _, _, value in self._named:
            _mapped(value, _noting(found, above))
        return found | {number for number in self._options.values() if number > above}

    def place(self, number: int) -> str:
        """Where a number is, for a message."""
        for function in self._functions:
            if number in _numbers(function, number - 1):
                at = function.__code__
                return f"{function.__module__}.{function.__qualname__}, line {at.co_firstlineno}"
        for owner, name, value in self._named:
            found: set[int] = set()
            _mapped(value, _noting(found, number - 1))
            if number in found:
                return f"{getattr(owner, '__qualname__', owner.__name__)}.{name}"
        return f"the option {next(name for name, value in self._options.items() if value == number)}"

    def remembers(self, smaller: Mapping[int, int], since: int) -> bool | None:
        """As `_remembers`, with other numbers."""
        options = {name: str(smaller[value]) for name, value in self._options.items() if value in smaller}
        lake = dataclasses.replace(self._lake, options={**self._lake.options, **options})
        with self._with(smaller), _within(_SECONDS):
            return _remembers(lake, since)

    @contextmanager
    def _with(self, smaller: Mapping[int, int]) -> Iterator[None]:
        def change(number: int) -> int:
            return smaller.get(number, number)

        with ExitStack() as back:
            for function in self._functions:
                for part in ("__code__", "__defaults__", "__kwdefaults__"):
                    _put(back, function, part, getattr(function, part), change)
            for owner, name, value in self._named:
                _put(back, owner, name, value, change)
            yield


def _put(back: ExitStack, owner: Any, name: str, was: Any, change: Change) -> None:
    now = _mapped(was, change)
    if now is not was:
        with suppress(AttributeError, TypeError):  # a class of C, or one that takes no other value
            setattr(owner, name, now)
            back.callback(setattr, owner, name, was)


def _mapped(value: Any, change: Change) -> Any:
    """A constant, or a function's code, with other numbers; itself where none is another one."""
    if type(value) is int:
        number = change(abs(value))
        return value if number == abs(value) else number if value > 0 else -number
    if isinstance(value, str):
        return _IN_TEXT.sub(lambda found: str(change(int(found[0]))), value) if _IN_TEXT.search(value) else value
    if type(value) is tuple:
        made = tuple(_mapped(each, change) for each in value)
        return value if all(now is was for now, was in zip(made, value, strict=True)) else made
    if type(value) is dict:
        named = {name: _mapped(each, change) for name, each in value.items()}
        return value if all(named[name] is each for name, each in value.items()) else named
    if isinstance(value, CodeType):
        constants = _mapped(value.co_consts, change)
        return value if constants is value.co_consts else value.replace(co_consts=constants)
    return value


def _noting(found: set[int], above: int) -> Change:
    def note(number: int) -> int:
        if number > above and number not in _MODES:
            found.add(number)
        return number

    return note


def _numbers(function: FunctionType, above: int) -> set[int]:
    found: set[int] = set()
    for part in (function.__code__, function.__defaults__, function.__kwdefaults__):
        _mapped(part, _noting(found, above))
    return found


def _functions(seen: Mapping[int, CodeType]) -> list[FunctionType]:
    """Those whose code was seen."""
    gc.unfreeze()  # a fork's objects of before are frozen, and would not be listed
    return [each for each in gc.get_objects() if type(each) is FunctionType and id(each.__code__) in seen]


def _named(own: Collection[str]) -> Iterator[tuple[Any, str, Any]]:
    """Constants of the plugin's own modules and classes, by their names."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in own:
            continue
        kinds = {each for each in vars(module).values() if isinstance(each, type) and not issubclass(each, enum.Enum)}
        for owner in (module, *(each for each in kinds if each.__module__.partition(".")[0] in own)):
            for attribute, value in list(vars(owner).items()):
                if type(value) in (int, str, tuple) and not attribute.startswith("__"):
                    yield owner, attribute, value


def _options(lake: Lake) -> dict[str, int]:
    """The plugin's options that are numbers, by their keys."""
    kind = lake.plugin.options_type
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    defaults = {field.name.replace("_", "-"): field.default for field in fields}
    return {name: value for name, value in defaults.items() if type(value) is int and name not in lake.options}


@contextmanager
def _seen(seen: dict[int, CodeType], own: Collection[str]) -> Iterator[None]:
    """Note which code of these packages is run, by its identity."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and str(frame.f_globals.get("__name__")).partition(".")[0] in own:
            seen[id(frame.f_code)] = frame.f_code

    was = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(was)


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """End what takes longer, with an error."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError("it takes too long with another number")

    if not hasattr(signal, "setitimer"):  # on Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, where the plugin passes over the error and goes on
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
