"""Puts a mutant into this process, and into the interpreters that it will start."""

from __future__ import annotations

import gc
import marshal
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType

from laketier_verification.mutants.lines import marked
from laketier_verification.mutants.source import Module, Mutant

HOOKED = "MUTANTS_OF_LAKETIER"
"""Environment: a folder with the code of modules, each in a file named after it. The name does not begin as those of
lake keys do: a plugin would refuse an unknown key."""
_HOOK = Path(__file__).parent / "startup"

Live = Mapping[tuple[str, str, int], list[FunctionType]]
"""The functions of this process: by file, qualified name and first line."""


class NotViable(Exception):
    """The mutant can't be made: it does not compile, or its function is not in this process."""


def live_functions(files: Iterable[Path]) -> Live:
    """Those of some files, wherever they are bound: in a class, in a decorator, in another module."""
    gc.unfreeze()  # what was there when the tests were collected is frozen, and would not be listed
    wanted = {str(file) for file in files}
    found: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in wanted:
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def put_in(mutants: Iterable[Mutant], modules: Mapping[str, Module], live: Live, folder: Path) -> None:
    """For the rest of this process's life. ``folder`` is empty, and read by processes that this one starts."""
    folder.mkdir()
    by_module: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_module[mutant.key.module].append(mutant)
    for name, together in by_module.items():
        module = modules[name]
        try:
            code = module.code(together)
        except (SyntaxError, ValueError) as error:
            raise NotViable(str(error)) from error
        (folder / name).write_bytes(marshal.dumps(code))
        for mutant in together:
            where = str(module.file), mutant.key.function, mutant.outer
            new = next((each for each in _within(code) if _place(each) == where), None)
            if new is None or where not in live:
                raise NotViable(f"{mutant.key.function} is not in this process")
            for function in live[where]:
                try:
                    function.__code__ = new
                except ValueError as error:
                    raise NotViable(str(error)) from error
    os.environ[HOOKED] = str(folder)


def put_in_unchanged(modules: Iterable[Module], live: Live, folder: Path) -> None:
    """Each module's own code, compiled anew, with marks for a `Recorder`: what the way of it changes by itself."""
    folder.mkdir()
    for module in modules:
        code = marked(module)
        (folder / module.name).write_bytes(marshal.dumps(code))
        for each in _within(code):
            for function in live.get(_place(each), ()):
                if "<locals>" not in each.co_qualname:
                    function.__code__ = each
    os.environ[HOOKED] = str(folder)


def seen_by_children() -> None:
    """From now on the interpreters that this process starts look at `HOOKED`."""
    import_from(_HOOK)


def import_from(folder: Path) -> None:
    """From now on the interpreters that this process starts import from there, too."""
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(folder) + (os.pathsep + path if path else "")


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno
