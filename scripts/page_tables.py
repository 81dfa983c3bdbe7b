"""Writes the tables of docs/ that come from the code: ``python scripts/page_tables.py``, or ``--check``.

A table stands between ``<!-- generated: name -->`` and ``<!-- end of name -->``, so a checkout has it, too. What
a format makes of a type is found out: a table with such a column is made in each format, in a temporary folder.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import conformance_pages
import pyarrow as pa
import source_reports

from laketier.config import KeyDoc, document, lake_reference
from laketier.config.job import job_reference
from laketier.config.service import service_reference
from laketier.registry import configure, format_names, load_format, load_source, open_lake
from laketier.spi import Feature, UnsupportedType, support_of
from laketier.tables import prepare_table

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end of (?P=name) -->)", re.DOTALL
)


OF_TESTS = ("wrong-plugins.md", "conformance.md")
"""Pages about what tests found. `--check`, a part of lint, leaves them to tests/docs."""


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    stale = {page: new for page, (old, new) in pages().items() if old != new}
    if check:
        stale = {page: new for page, new in stale.items() if page.name not in OF_TESTS}
    for page, text in stale.items():
        if not check:
            page.write_text(text, encoding="utf-8")
        print(page.relative_to(ROOT), "says otherwise than the code: run make pages" if check else "is written anew")
    return 1 if stale and check else 0


def pages() -> dict[Path, tuple[str, str]]:
    """Each page with such a table: as it is, and as it should be."""
    found = {page: page.read_text(encoding="utf-8") for page in marked()}
    return {page: (text, filled(page, text)) for page, text in found.items()}


def marked() -> list[Path]:
    """The pages with such a table."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in found if MARKED.search(page.read_text(encoding="utf-8"))]


def filled(page: Path, text: str) -> str:
    up = "../" * (len(page.relative_to(ROOT).parts) - 1)
    return MARKED.sub(lambda mark: f"{mark['begin']}\n{GENERATORS[mark['name']](up)}\n\n{mark['end']}", text)


def configuration(_: str) -> str:
    """Every key of the core, of job files, and of every installed format."""
    parts = ["## Keys of laketier", _keys(lake_reference())]
    parts += ["## Job files", _keys(job_reference())]
    parts += ["## Service files", _keys(service_reference())]
    for name in ours():
        parts += [f"## Keys of {name}", _keys(document(load_format(name).options_type, f"lake.{name}."))]
    return "\n\n".join(parts)


def features(_: str) -> str:
    """What each format can do."""
    names = ours()
    plugins = [load_format(name) for name in names]
    rows = [["feature", *names], ["delivery", *(plugin.delivery.value for plugin in plugins)]]
    for feature in Feature:
        supports = [support_of(plugin.features, feature) for plugin in plugins]
        rows.append([feature.value, *("yes" if support.full else f"no: {support.reason}" for support in supports)])
    return _table(rows)


def source(kind: str) -> Callable[[str], str]:
    """The options of a kind of source, and of its tables."""

    def options(_: str) -> str:
        plugin = load_source(kind)
        tables = {"kafka": "a topic"}.get(kind, "a table")
        parts = ["## Of the cluster: `options`", _keys(document(plugin.options_type, ""))]
        parts += [f"## Of {tables}: `read`", _keys(document(plugin.table_options_type, ""))]
        return "\n\n".join(parts)

    return options


US, NS, ZONE = pa.timestamp("us"), pa.timestamp("ns"), "Europe/Berlin"
SAMPLES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal32(p, s)": pa.decimal32(9, 2),
    "decimal64(p, s)": pa.decimal64(18, 2),
    "decimal128(p, s)": pa.decimal128(38, 2),
    "decimal256(p, s), up to 38 digits": pa.decimal256(38, 2),
    "decimal256(p, s), more digits": pa.decimal256(39, 2),
    "decimal with a negative scale": pa.decimal128(5, -2),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "fixed_size_binary(n)": pa.binary(16),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32(s), time32(ms)": pa.time32("ms"),
    "time64(us)": pa.time64("us"),
    "time64(ns)": pa.time64("ns"),
    "timestamp(s), timestamp(ms)": pa.timestamp("ms"),
    "timestamp(us)": US,
    "timestamp(ns)": NS,
    "timestamp(s, zone), timestamp(ms, zone)": pa.timestamp("ms", ZONE),
    "timestamp(us, zone)": pa.timestamp("us", ZONE),
    "timestamp(ns, zone)": pa.timestamp("ns", ZONE),
    "duration": pa.duration("us"),
    "month_day_nano_interval": pa.month_day_nano_interval(),
    "list": pa.list_(pa.int64()),
    "large_list": pa.large_list(pa.int64()),
    "list_view, large_list_view": pa.list_view(pa.int64()),
    "fixed_size_list of numbers": pa.list_(pa.float32(), 4),
    "fixed_size_list of strings": pa.list_(pa.string(), 4),
    "struct": pa.struct({"a": pa.int64()}),
    "struct without fields": pa.struct([]),
    "map": pa.map_(pa.string(), pa.int64()),
    "map with sorted keys": pa.map_(pa.string(), pa.int64(), keys_sorted=True),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "run_end_encoded": pa.run_end_encoded(pa.int32(), pa.string()),
    "null": pa.null(),
    "union": pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.string())]),
    "extension arrow.uuid": pa.uuid(),
    "any other extension": pa.opaque(pa.int64(), "kind", "vendor"),
}
"""The Arrow types, and one of each to try."""


def types(_: str) -> str:
    """A row per Arrow type, a column per format."""
    with tempfile.TemporaryDirectory(prefix="laketier-types-") as folder:
        rows = [["Arrow", *ours()]]
        for number, (name, kind) in enumerate(SAMPLES.items()):
            rows.append([f"`{name}`", *(_made_of(kind, each, f"{folder}/{each}", f"db.t{number}") for each in ours())])
    return _table(rows)


def _made_of(kind: pa.DataType, lake_format: str, warehouse: str, table: str) -> str:
    lake = open_lake(configure({"lake.format": lake_format, "lake.warehouse": warehouse, "lake.table": table}))
    try:
        kept = prepare_table(lake, pa.schema({"c": kind})).descriptor.schema.field("c").type
    except UnsupportedType as refusal:
        return f"**refused.** {_sentence(refusal.fix or refusal.why or '')}".rstrip()
    native, note = _native(lake_format, kept)
    read_back = "" if kept.equals(kind) else f", read as `{_short(kept)}`"
    return f"{native}{read_back}{f'. {_sentence(note)}' if note else ''}"


def _native(lake_format: str, kind: pa.DataType) -> tuple[str, str]:
    """What the format calls the type, by the plugin's own table of types."""
    module = importlib.import_module(type(load_format(lake_format)).__module__.partition(".")[0] + ".types")
    rows = [row for row in module.TYPE_TABLE if row[1] != "refused" and _name(_short(kind)) in _names(row[0])]
    if len(rows) > 1:
        zoned = getattr(kind, "tz", None) is not None
        rows = [row for row in rows if ("tz" in row[0]) == zoned]
    ((_, native, note),) = rows
    native = {"the same": "yes"}.get(native, f"`{native}`" if " " not in native else native)
    return native, "" if note.startswith("Read back as") else note


def _names(cell: str) -> set[str]:
    return {_name(each) for each in re.sub(r"[(\[].*?[)\]]", "", cell).split(", ")}


def _name(text: str) -> str:
    name = re.split(r"[\[(<]| of ", text)[0].strip()
    return {"float": "float32", "double": "float64", "halffloat": "float16", "extension": "extension arrow.uuid"}.get(
        name, name
    )


def _sentence(text: str) -> str:
    """``text`` as sentences. A word that begins with a small letter and goes on with large ones is a name."""
    return "" if not text else f"{text[0].upper()}{text[1:]}".rstrip(".") + "."


def _short(kind: pa.DataType) -> str:
    return str(kind).replace("element: ", "").replace("item: ", "")


def api(*modules: str) -> Callable[[str], str]:
    """Names of modules, the first sentence of each docstring, and where the source is."""

    def names(up: str) -> str:
        parts = []
        for module in modules:
            rows = [["name", "", "source"]]
            rows += [
                [f"`{name}`", _first_sentence(doc), f"[{file.name}]({up}{file.relative_to(ROOT).as_posix()})"]
                for name, doc, file in _exported(module)
            ]
            parts += [f"### `{module}`", _table(rows)]
        return "\n\n".join(parts)

    return names


def _exported(module: str) -> Iterator[tuple[str, str, Path]]:
    loaded = importlib.import_module(module)
    public = getattr(loaded, "__all__", None) or [n for n in vars(loaded) if not n.startswith("_")]
    homes = _homes(loaded)
    for name in sorted(set(public) - {"__version__"}, key=lambda name: (name.isupper(), name.lower())):
        thing = getattr(loaded, name)
        named = inspect.isclass(thing) or inspect.isfunction(thing)
        home = importlib.import_module(thing.__module__) if named else homes.get(name, loaded)
        file = Path(inspect.getsourcefile(home) or "").resolve()
        yield name, (inspect.getdoc(thing) if named else _documented(file).get(name)) or "", file


def _homes(loaded: Any) -> dict[str, Any]:
    """Where names that a package exports are defined."""
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: importlib.import_module(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("laketier")
        for alias in node.names
    }


def _documented(file: Path) -> dict[str, str]:
    """The text below each assignment of a module."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = {}
    for statement, after in pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            found |= {each.id: text.value for each in targets if isinstance(each, ast.Name)}
    return found


def _first_sentence(doc: str) -> str:
    paragraph = " ".join(doc.partition("\n\n")[0].split()).replace("``", "`")
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0].rstrip(":")


def ours() -> list[str]:
    return [name for name in format_names() if type(load_format(name)).__module__.startswith("laketier_")]


def _keys(keys: Iterable[KeyDoc]) -> str:
    rows = [["key", "type", "default", ""]]
    return _table([*rows, *([f"`{key.key}`", key.type, key.default, key.doc] for key in keys)])


def _table(rows: list[list[str]]) -> str:
    head, *body = (["" if cell is None else str(cell).replace("|", "\\|") for cell in row] for row in rows)
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" for line in lines)


def conformance(folder: Path, target: str) -> Callable[[str], str]:
    """The table of the reports in a folder, which this target of make writes."""

    def table(_: str) -> str:
        told = conformance_pages.reports(folder)
        if told:
            return _table(conformance_pages.formats(told))
        return f"No report is in the repository yet: `make {target}` writes them."

    return table


def table_of(rows: Callable[[str], list[list[str]]]) -> Callable[[str], str]:
    return lambda up: _table(rows(up))


GENERATORS: dict[str, Callable[[str], str]] = {
    "conformance": conformance(conformance_pages.REPORTS, "reports"),
    "conformance-third-party": conformance(conformance_pages.THIRD_PARTY, "reports-third-party"),
    "wrong-plugins": table_of(conformance_pages.wrong_plugins),
    "wrong-sources": table_of(conformance_pages.wrong_sources),
    "sources": table_of(source_reports.table),
    "configuration": configuration,
    "features": features,
    "types": types,
    "kafka": source("kafka"),
    "fluss": source("fluss"),
    "spi": api("laketier.spi"),
    "kit": api("laketier.kit"),
    "python": api("laketier.spark", "laketier", "laketier.registry", "laketier.tiering", "laketier.bucketing"),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
