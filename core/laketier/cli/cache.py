"""``laketier cache``: what is kept of tables on this host."""

from __future__ import annotations

import json as jsons
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.registry import Lake
from laketier.spi import LaketierError, TablePath, host_time
from laketier.tables import metadata_cache
from laketier.tables.metadata import MetadataCache, lake_of_table

app = typer.Typer(help="See, fill and empty what is kept of tables' metadata on this host.", no_args_is_help=True)

_SAVED_SECONDS = 30.0


@app.command(epilog="Example: [bold]laketier cache status[/]")
def status(json: Json = False) -> None:
    """List the tables whose descriptions this user has on the disk of this host, newest first."""
    cache = metadata_cache()
    folder, now = cache.disk.root, host_time()
    tables = [_entry(saved, size, now) for saved, size in cache.disk.entries()]
    document: dict[str, Any] = {
        "folder": None if folder is None else str(folder),
        "tables": tables,
        "bytes": sum(each["bytes"] for each in tables),
        "most bytes": cache.disk.limit,
    }
    if json:
        print_json(document)
        return
    out = RichTable()
    for column in ("format", "table", "warehouse", "age", "columns", "snapshot", "bytes"):
        out.add_column(column, overflow="fold")
    for each in tables:
        row = (each["format"], each["table"], each["warehouse"], f"{each['age seconds']} s", each["columns"])
        out.add_row(*map(str, (*row, each["snapshot"], decimal(each["bytes"]))))
    console().print(out, markup=False)
    where = "nowhere: there is no home, and LAKETIER_CACHE_DIR names no folder" if folder is None else str(folder)
    say(f"{len(tables)} tables, {decimal(document['bytes'])} of {decimal(cache.disk.limit)}, in {where}")


@app.command(epilog="Example: [bold]laketier cache warm -c lake.yaml[/]")
@takes_lake
def warm(options: LakeOptions, json: Json = False) -> None:
    """Load a table, or all tables of the warehouse, and keep their descriptions for other processes of this host."""
    lake = options.opened_lake()
    paths = [lake.config.table] if options.names_table() else lake.list_tables()
    cache = metadata_cache()
    found = [_warmed(cache, lake, path) for path in paths]
    saved = cache.flush(_SAVED_SECONDS)
    kept = {jsons.loads(each.key)["table"] for each, _ in cache.disk.entries()}
    for each in found:
        each["kept"] = saved and each["error"] is None and each["table"] in kept
    if json:
        print_json(found)
    else:
        for each in found:
            said = (
                "kept" if each["kept"] else "not kept: the format tells no version of it, or the folder can't be used"
            )
            say(f"{each['table']}: {each['error'] or said}")
    if any(each["error"] for each in found):
        raise typer.Exit(1)


@app.command(epilog="Example: [bold]laketier cache clear sales.orders -c lake.yaml[/]")
@takes_lake
def clear(
    options: LakeOptions,
    every: Annotated[bool, typer.Option("--all", help="Of all tables, also of other warehouses.")] = False,
    json: Json = False,
) -> None:
    """Forget a table, all tables of the warehouse, or with --all everything. Tables themselves are not touched.

    Processes that run keep what they have in memory, which they check before they use it.
    """
    cache = metadata_cache()
    if every:
        count = cache.clear()
    else:
        lake = options.opened_lake()
        paths = [lake.config.table] if options.names_table() else lake.list_tables()
        count = sum(cache.forget(lake_of_table(lake, path).config) for path in paths)
    if json:
        print_json({"forgotten": count})
    else:
        say(f"{count} tables forgotten")


def _warmed(cache: MetadataCache, lake: Lake, path: TablePath) -> dict[str, Any]:
    try:
        cache.described(lake_of_table(lake, path))
    except LaketierError as error:
        return {"table": str(path), "error": str(error)}
    return {"table": str(path), "error": None}


def _entry(saved: Any, size: int, now: int) -> dict[str, Any]:
    key = jsons.loads(saved.key)
    return {
        "format": key["format"],
        "table": key["table"],
        "warehouse": key["warehouse"],
        "age seconds": max(0, (now - saved.saved_at) // 1000),
        "columns": len(saved.table.schema),
        "snapshot": saved.table.snapshot_id,
        "uuid": saved.table.table_uuid,
        "bytes": size,
    }
