"""``laketier cache``: what is kept of tables on this host."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.registry import Lake
from laketier.spi import LaketierError, StorageError, TablePath, host_time
from laketier.tables import metadata_cache
from laketier.tables.metadata import MetadataCache, lake_of_table
from laketier.tables.metadata.disk import Disk
from laketier.tables.metadata.document import Saved
from laketier.tables.metadata.key import KeyParts, key_parts, table_key

app = typer.Typer(help="See, fill and empty what is kept of tables' metadata on this host.", no_args_is_help=True)

_SAVED_SECONDS = 30.0
_NOT_KEPT = (
    "not kept: the format tells no version of it, its description may hold a secret, or the folder can't be used "
    "(see `laketier cache status`)"
)


@app.command(epilog="Example: [bold]laketier cache status[/]")
def status(json: Json = False) -> None:
    """List the tables whose descriptions this user has on the disk of this host, newest first."""
    disk = metadata_cache().disk
    folder, usage = disk.root, disk.usage()
    tables = [_entry(disk, saved, size) for saved, size in disk.entries()]
    document: dict[str, Any] = {
        "folder": None if folder is None else str(folder),
        "problem": usage.problem,
        "tables": tables,
        "unreadable files": max(0, usage.files - len(tables)),
        "bytes": usage.bytes,
        "most bytes": disk.limit,
    }
    if json:
        print_json(document)
        return
    out = RichTable()
    for column in ("format", "table", "warehouse", "age", "state", "columns", "snapshot", "bytes"):
        out.add_column(column, overflow="fold")
    for each in tables:
        named = (each["format"], each["table"], each["warehouse"], f"{each['age seconds']} s", each["state"])
        out.add_row(*map(str, (*named, each["columns"], each["snapshot"], decimal(each["bytes"]))))
    console().print(out, markup=False)
    where = "nowhere: there is no home, and LAKETIER_CACHE_DIR names no folder" if folder is None else str(folder)
    say(f"{len(tables)} tables, {decimal(usage.bytes)} of {decimal(disk.limit)}, in {where}")
    if document["unreadable files"]:
        say(f"{document['unreadable files']} files there can't be read; `laketier cache clear --all` removes them")
    if usage.problem is not None:
        say(f"nothing is kept there: {usage.problem}")


@app.command(epilog="Example: [bold]laketier cache warm -c lake.yaml[/]")
@takes_lake
def warm(options: LakeOptions, json: Json = False) -> None:
    """Load a table, or all tables of the warehouse, and keep their descriptions for other processes of this host."""
    lake = options.opened_lake()
    paths = [lake.config.table] if options.names_table() else lake.list_tables()
    cache = metadata_cache()
    began = host_time()
    found = [_warmed(cache, lake, path) for path in paths]
    saved = cache.flush(_SAVED_SECONDS)
    for path, each in zip(paths, found, strict=True):
        each["kept"] = saved and each["error"] is None and _is_kept(cache, lake_of_table(lake, path), began)
    if json:
        print_json(found)
    else:
        for each in found:
            say(f"{each['table']}: {each['error'] or ('kept' if each['kept'] else _NOT_KEPT)}")
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
    problem = cache.disk.usage().problem
    if problem is not None:
        raise StorageError(
            "the folder of the cache can't be used, and nothing was deleted",
            where=str(cache.disk.root),
            why=problem,
            fix="Delete the folder yourself, or let LAKETIER_CACHE_DIR name another one.",
        )
    if every:
        count, left = cache.clear(), cache.disk.usage().files
    else:
        config = options.opened_lake().config
        table = config.table if options.names_table() else None
        count, left = cache.forget_all(config, table), len(cache.files_of(config, table))
    if json:
        print_json({"forgotten": count, "left": left})
    else:
        say(f"{count} tables forgotten")
        if left:
            say(f"{left} files are still there: they can't be removed, or other processes wrote them just now")
    if left:
        raise typer.Exit(1)


def _warmed(cache: MetadataCache, lake: Lake, path: TablePath) -> dict[str, Any]:
    """Anew, also where a file is there already: it may be about to expire."""
    try:
        cache.opened(lake_of_table(lake, path))
    except LaketierError as error:
        return {"table": str(path), "error": str(error)}
    return {"table": str(path), "error": None}


def _is_kept(cache: MetadataCache, lake: Lake, began: int) -> bool:
    """Whether another process that is configured as this one finds the file that this one just wrote."""
    key = table_key(lake.config)
    saved = None if key is None else cache.disk.read(key.name, key.text)
    return saved is not None and saved.saved_at >= began


def _entry(disk: Disk, saved: Saved, size: int) -> dict[str, Any]:
    key = key_parts(saved.key) or KeyParts("?", "?", "?", "?")
    return {
        "format": key.format,
        "table": key.table,
        "warehouse": key.warehouse,
        "by": key.by,
        "state": disk.state_of(saved),
        "age seconds": (host_time() - saved.saved_at) // 1000,
        "columns": len(saved.table.schema),
        "snapshot": saved.table.snapshot_id,
        "uuid": saved.table.table_uuid,
        "bytes": size,
    }
