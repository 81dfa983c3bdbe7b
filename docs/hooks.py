"""Pages that are made from the code when the site is built: ``<!-- generated: name -->`` becomes a table."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from laketier.config import KeyDoc, document, lake_reference
from laketier.config.job import job_reference
from laketier.config.service import service_reference
from laketier.registry import format_names, load_format, load_source
from laketier.spi import Feature, support_of

_MARK = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return _MARK.sub(lambda match: GENERATORS[match["name"]](), markdown)


def configuration() -> str:
    """Every key of the core, of job files, and of every installed format."""
    parts = ["## Keys of laketier", _keys(lake_reference())]
    parts += ["## Job files", _keys(job_reference())]
    parts += ["## Service files", _keys(service_reference())]
    for name in _ours():
        parts += [f"## Keys of {name}", _keys(document(load_format(name).options_type, f"lake.{name}."))]
    return "\n\n".join(parts)


def features() -> str:
    """What each format can do."""
    names = _ours()
    plugins = [load_format(name) for name in names]
    rows = [["feature", *names], ["delivery", *(plugin.delivery.value for plugin in plugins)]]
    for feature in Feature:
        supports = [support_of(plugin.features, feature) for plugin in plugins]
        rows.append([feature.value, *("yes" if support.full else f"no: {support.reason}" for support in supports)])
    return _table(rows)


def types() -> str:
    """Arrow type → what each format makes of it."""
    columns: dict[str, dict[str, str]] = {}
    for name in _ours():
        module = importlib.import_module(type(load_format(name)).__module__.partition(".")[0] + ".types")
        for arrow, native, note in module.TYPE_TABLE:
            columns.setdefault(arrow, {})[name] = f"{native}" + (f" ({note})" if note else "")
    rows = [["Arrow", *_ours()]]
    rows += [[f"`{arrow}`", *(cells.get(name, "") for name in _ours())] for arrow, cells in columns.items()]
    return _table(rows)


def kafka() -> str:
    """The options of the source kafka: of a cluster, and of a topic."""
    plugin = load_source("kafka")
    parts = ["## Of the cluster: `options`", _keys(document(plugin.options_type, ""))]
    parts += ["## Of a topic: `read`", _keys(document(plugin.table_options_type, ""))]
    return "\n\n".join(parts)


def fluss() -> str:
    """The options of the source fluss: of a cluster, and of a table."""
    plugin = load_source("fluss")
    parts = ["## Of the cluster: `options`", _keys(document(plugin.options_type, ""))]
    parts += ["## Of a table: `read`", _keys(document(plugin.table_options_type, ""))]
    return "\n\n".join(parts)


def _ours() -> list[str]:
    return [name for name in format_names() if type(load_format(name)).__module__.startswith("laketier_")]


def _keys(keys: Iterable[KeyDoc]) -> str:
    rows = [["key", "type", "default", ""]]
    return _table([*rows, *([f"`{key.key}`", key.type, key.default, key.doc] for key in keys)])


def _table(rows: list[list[str]]) -> str:
    head, *body = (["" if cell is None else str(cell).replace("|", "\\|") for cell in row] for row in rows)
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" for line in lines)


GENERATORS = {"configuration": configuration, "features": features, "types": types, "kafka": kafka, "fluss": fluss}
