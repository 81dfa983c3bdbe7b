"""What is private in a library is used in one module each, and only what is listed here.

ruff (SLF001) refuses ``other._name``. It sees no import of a private name, no `getattr`, and nothing of a class that a
library's class is the base of: there `self._name` may be the library's.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = [ROOT / "core", ROOT / "conformance", *sorted(ROOT.glob("plugins/*/laketier_*"))]
OURS = ("laketier", "pyspark_laketier")

USED: dict[str, set[str]] = {
    # pyspark: a foreachBatch has no way to its query but through the JVM behind the session. Which files a DataFrame
    # reads is fetched name by name.
    "core/laketier/spark/running_query.py": {"_jdf", "_jsparkSession", "_jvm"},
    # pyspark: which session is active in a thread can be set in the JVM alone.
    "core/laketier/spark/threads.py": {"_jsparkSession", "_jvm"},
    # Python: what a process runs that ends by itself. A child that was forked ends before its parent's code goes on.
    "conformance/laketier_conformance/child_forks.py": {"_run_exitfuncs"},
    # pytest-xdist: how tests are spread. `_split_scope` is the place that its documentation gives for this.
    "conformance/laketier_conformance/spreading.py": {
        "_assign_work_unit", "_pending_of", "_reschedule", "_split_scope",
    },
    # pyiceberg: where the times of a commit that adds no snapshot can be put in order.
    "plugins/iceberg/laketier_iceberg/private.py": {"_load_file_io", "_update_and_stage_table"},
    # And where a session can get its limit of time before it is used.
    "plugins/iceberg/laketier_iceberg/rest.py": {"_config_headers"},
    # confluent-kafka: documented, and spelled as librdkafka spells its own errors.
    "plugins/kafka/laketier_kafka/client_errors.py": {
        "_ALL_BROKERS_DOWN", "_AUTHENTICATION", "_AUTO_OFFSET_RESET", "_BAD_MSG", "_INVALID_ARG",
        "_NOENT", "_PARTITION_EOF",
        "_RESOLVE", "_TIMED_OUT", "_TRANSPORT", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "_UNSUPPORTED_FEATURE",
    },
    # pylance: a schema with its field ids and other metadata; the path of a data file, in a hundredth of the time; the
    # moment of a commit by UTC, as the hour that comes twice in autumn can't be told from that of the host's zone.
    "plugins/lance/laketier_lance/private.py": {"_ds", "_from_protos", "_path", "__reduce__"},
}  # fmt: skip
"""Module → names. A new line needs a reason, a test of what is relied on, and an upper bound of the library."""


DOCUMENTED = {"_asdict", "_fields", "_replace", "_make", "_exit", "_current_frames"}
"""Of named tuples, of `os` and of `sys`. ruff lets all but the last pass, too."""

PICKLED = {"__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"}
"""The names are Python's, but what they give and take is the library's own."""

TAKE_TEXT = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller", "import_module", "__import__"}


def is_private(name: str) -> bool:
    is_hidden = re.fullmatch(r"_+[A-Za-z]\w*", name) is not None and not name.endswith("__")
    return (is_hidden or name in PICKLED) and name not in DOCUMENTED


def is_foreign(module: str) -> bool:
    return not module.startswith(OURS) and module != "__future__"


def private_names(tree: ast.Module) -> Iterator[str]:
    imports = imports_of(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if is_foreign(module):
                yield from (part for part in module.split(".") if is_private(part))
                yield from (alias.name for alias in names if is_private(alias.name))
            case ast.Import(names=names):
                yield from (part for alias in names for part in alias.name.split(".") if is_private(part))
            case ast.Attribute(value=value, attr=name) if is_private(name) and not is_own(value):
                yield name
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[whose, *_]) if (
                called in TAKE_TEXT and not is_own(whose) and is_foreign(imports.get(ast.unparse(whose), ""))
            ):
                texts = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
                yield from (part for text in texts for part in text.split(".") if is_private(part))
            case ast.Subscript(value=looked_in, slice=ast.Constant(value=str(name))) if is_private(name):
                yield from (name for whose in attributes_of(looked_in) if not is_own(whose))
            case ast.ClassDef():
                yield from used_of_bases(node, imports)


def is_own(value: ast.expr) -> bool:
    """Whether an attribute of ``value`` is one of the class that the code is in, as far as can be seen."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in ("super", "type") or is_own(value.func)
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "other")


def attributes_of(value: ast.expr) -> list[ast.expr]:
    """The object whose attributes ``value`` is: ``vars(table)``, ``table.__dict__``."""
    match value:
        case ast.Call(func=ast.Name(id="vars"), args=[whose]) | ast.Attribute(value=whose, attr="__dict__"):
            return [whose]
    return []


def imports_of(tree: ast.Module) -> dict[str, str]:
    """Name → where it comes from."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: f"{alias.name}:" for alias in node.names}
    return found


def used_of_bases(node: ast.ClassDef, imports: dict[str, str]) -> Iterator[str]:
    """What a class overrides, or reads of itself, that a base of it in a library keeps private."""
    theirs: set[str] = set()
    for base in node.bases:
        name, _, attribute = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).rpartition(".")
        module, _, imported = imports.get(name or attribute, "laketier:").partition(":")
        if is_foreign(module):
            kind = getattr(importlib.import_module(module), imported or attribute)
            theirs |= private_of(getattr(kind, attribute) if imported and name else kind)
    own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    own |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and is_own(each.value)}
    yield from own & theirs


def private_of(kind: object) -> set[str]:
    mro = getattr(kind, "__mro__", (object,))[:-1]  # `NamedTuple` is a function
    return {name for each in mro if is_foreign(each.__module__) for name in private_in(each)}


@cache
def private_in(kind: type) -> set[str]:
    names = {*vars(kind), *getattr(kind, "__annotations__", ())}
    with suppress(OSError, TypeError):  # not written in Python
        names |= set(re.findall(r"\bself\.(_[a-z]\w*)", inspect.getsource(kind)))
    return {name for name in names if is_private(name)}


def found_in(source: str) -> set[str]:
    return set(private_names(ast.parse(source)))


def test_private_names_of_libraries_are_those_listed() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for folder in PRODUCT
        for path in sorted(folder.rglob("*.py"))
        if (names := found_in(path.read_text(encoding="utf-8")))
    }
    assert found == USED


def test_ruff_lets_the_same_modules_and_no_other_pass() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert "SLF" in lint["select"]
    passed = {path for path, rules in lint["per-file-ignores"].items() if "SLF" in rules and path.endswith(".py")}
    of_a_base = {"conformance/laketier_conformance/spreading.py", "plugins/iceberg/laketier_iceberg/rest.py"}
    assert passed == USED.keys() - of_a_base


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from pyiceberg.table.update.snapshot import _FastAppendFiles", {"_FastAppendFiles"}),
        ("import pyarrow._parquet", {"_parquet"}),
        ("from pyarrow._fs import FileSystem", {"_fs"}),
        ("getattr(catalog, '_update_and_stage_table')()", {"_update_and_stage_table"}),
        ("import operator\noperator.attrgetter('a._b')(table)", {"_b"}),
        ("importlib.import_module('pyarrow._parquet')", {"_parquet"}),
        ("vars(table)['_table']", {"_table"}),
        ("table.__dict__['_table']", {"_table"}),
        ("table._table.x", {"_table"}),
        ("from laketier.kit import failpoints\nmonkeypatch.setattr(failpoints, '_parsed', 0)", set()),
        ("table.__table", {"__table"}),
        ("table.__reduce__()", {"__reduce__"}),
        ("from pyiceberg.table import Transaction\nclass T(Transaction):\n def a(self): self._updates", {"_updates"}),
        ("from pyiceberg.catalog.sql import SqlCatalog\nclass C(SqlCatalog):\n def _convert_orm_to_iceberg(self): 0",
         {"_convert_orm_to_iceberg"}),
        ("import logging\nclass F(logging.Formatter):\n def a(self): self._style", {"_style"}),
        ("class Own:\n def a(self): self._updates; super().__reduce__(); vars(self)['_x']", set()),
        ("table.__class__.__name__", set()),
        ("row._asdict()", set()),
    ],
)  # fmt: skip
def test_each_way_to_a_private_name_is_seen(source: str, names: set[str]) -> None:
    assert found_in(source) == names
