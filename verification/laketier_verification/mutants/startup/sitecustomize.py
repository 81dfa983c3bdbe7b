"""Runs when an interpreter starts that has this folder on its path: modules with mutants are taken from elsewhere."""

import os
import sys
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


_FINDER = _Finder()
if _FOLDER is not None:
    sys.meta_path.insert(0, _FINDER)
