"""What the commands of indexes show: documents for machines, tables for people, and how far a build is."""

from __future__ import annotations

import json as jsons
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from laketier.cli.shown import ShownConsole, console, print_json, say
from laketier.maintenance.index_builds import IndexProgress, Told, said_beside
from laketier.maintenance.index_upkeep import IndexUpkeep
from laketier.spi import ConfigError, IndexInfo


def index_document(info: IndexInfo) -> dict[str, Any]:
    """An index for machines."""
    rows = info.rows_indexed + info.rows_not_indexed
    return {
        "name": info.name,
        "column": info.column,
        "kind": info.kind,
        "options": dict(info.options),
        "segments": list(info.segments),
        "rows_indexed": info.rows_indexed,
        "rows_not_indexed": info.rows_not_indexed,
        "share_indexed": round(info.rows_indexed / rows, 4) if rows else 1.0,
        "bytes": info.bytes,
        "snapshot": info.snapshot_id,
    } | ({} if info.damage is None else {"damage": info.damage})


def upkeep_document(done: IndexUpkeep) -> dict[str, Any]:
    """What became of an index, for machines."""
    steps = [{"step": each.step.value, "why": each.why} for each in done.steps]
    now = {} if done.info is None else index_document(done.info)
    return {"name": done.name, "steps": steps, "error": None if done.error is None else str(done.error), **now}


def print_index(info: IndexInfo, *, json: bool, **more: Any) -> None:
    """Print an index, and what else there is to say of it."""
    document = index_document(info) | more
    if json:
        print_json(document)
        return
    grid = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    for key, value in document.items():
        shown = "\n".join(map(str, value)) if isinstance(value, list) else value
        grid.add_row(key.replace("_", " "), f"{shown:,}" if type(shown) is int else str(shown))
    console().print(grid, markup=False)


@contextmanager
def index_progress() -> Iterator[Told]:
    """Tells how far a build is on standard error: a bar on a terminal, elsewhere a line per part."""
    shown = ShownConsole(stderr=True)
    if not shown.is_terminal:
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows, {task.fields[parts]} parts"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task("", total=None, parts="")

        def told(done: IndexProgress) -> None:
            parts = f"{done.parts_built}/{done.parts}{said_beside(done)}"
            bar.update(task, description=done.name, completed=done.rows_built, total=done.rows, parts=parts)

        yield told


def _lines() -> Callable[[IndexProgress], None]:
    began = time.monotonic()

    def told(done: IndexProgress) -> None:
        parts = f"{done.parts_built} of {done.parts} parts, {done.rows_built:,} of {done.rows:,} rows"
        say(f"index {done.name}: {parts}, {time.monotonic() - began:.1f} s{said_beside(done)}", err=True)

    return told


def settings_of(given: list[str] | None, *, flag: str = "--option") -> dict[str, Any]:
    """Undo an option of NAME=VALUE: values are JSON, or else text. Raises `ConfigError`."""
    example = "with_position=true" if flag == "--option" else "max-segments=4"
    found: dict[str, Any] = {}
    for item in given or []:
        key, equals, text = item.partition("=")
        if not equals:
            raise ConfigError(f"{flag} {item!r} is not NAME=VALUE", fix=f"For example {flag} {example}.")
        try:
            found[key.strip()] = jsons.loads(text)
        except ValueError:
            found[key.strip()] = text
    return found
