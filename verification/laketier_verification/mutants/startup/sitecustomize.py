"""Runs when an interpreter starts that has this folder on its path: modules with mutants are taken from elsewhere.
Where lines are recorded, the marks in their code write each line once, and at once, as the process may be killed."""

import builtins
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_FOLDER = os.environ.get("MUTANTS_OF_LAKETIER")


class _Mutated(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        import marshal

        code = marshal.loads(Path(str(_FOLDER), fullname).read_bytes())
        assert isinstance(code, CodeType)
        return code


class _Finder:
    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not Path(str(_FOLDER), name).exists():
            return None
        sys.meta_path.remove(_FINDER)
        try:
            from importlib.util import find_spec

            spec = find_spec(name) if path is None else PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        finally:
            sys.meta_path.insert(0, _FINDER)
        if spec is not None and spec.origin is not None:
            spec.loader = _Mutated(name, spec.origin)
        return spec


_LINES = os.environ.get("LINES_OF_LAKETIER")
_seen: set[tuple[str, int]] = set()


def _mark(module: str, line: int) -> None:
    if (module, line) not in _seen:
        _seen.add((module, line))
        with suppress(OSError):  # a test may limit the size of files, and then wants to see what the plugin does
            os.write(_TO, f"{module} {line}\n".encode())


if _LINES is not None:
    # Opened now: a test may leave a process without descriptors.
    _TO = os.open(_LINES, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.register_at_fork(after_in_child=_seen.clear)  # what a server ran for one test its forks run for others
builtins._a_line_of_laketier_runs = (lambda *_: None) if _LINES is None else _mark  # type: ignore[attr-defined]
_FINDER = _Finder()
if _FOLDER is not None:
    sys.meta_path.insert(0, _FINDER)
