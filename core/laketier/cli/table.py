"""``laketier status``, ``history`` and ``read``: one table, seen through its plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.table import Table as RichTable

from laketier.cli.index_shown import index_document
from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.cli.watermarks import moment, watermark_document, watermark_text
from laketier.registry import Lake
from laketier.spi import Feature, FeatureNotSupported, Refused, ScanRequest, TableError, TableInfo, support_of
from laketier.tables.comparisons import parse_filter
from laketier.tables.scan import scan
from laketier.tiering import pipelines

STATUS_EPILOG = "Example: [bold]laketier status sales.orders -f FORMAT -w /data/lake --set lake.pipeline=orders-v1[/]"
HISTORY_EPILOG = "Example: [bold]laketier history sales.orders -c lake.yaml --limit 5[/]"
READ_EPILOG = "Example: [bold]laketier read sales.orders -c lake.yaml --columns id,total --where 'total >= 10' -n 20[/]"


@takes_lake
def status(options: LakeOptions, json: Json = False) -> None:
    """Show a table: snapshot, schema, the watermarks of its pipelines (or of lake.pipeline), how to open it elsewhere.

    Without a table: list the tables of the warehouse.
    """
    if not options.names_table():
        _list_tables(options.opened_lake(), json=json)
        return
    lake, info = options.opened()
    known = _known(lake, info)
    document: dict[str, Any] = {
        "table": str(info.path),
        "format": lake.config.format,
        "location": info.location,
        "uuid": info.table_uuid,
        "snapshot": info.snapshot_id,
        "partitioned by": [str(field) for field in info.descriptor.partition_by],
        "columns": {field.name: f"{field.type}{'' if field.nullable else ' not null'}" for field in info.schema},
        "watermark": next((_pipeline_document(each) for each in known or () if lake.config.pipeline), None),
        "rounds refused": _refusal(lake, info),
        "pipelines": None if known is None else {each.pipeline: _pipeline_document(each) for each in known},
        "indexes": _indexes(lake, info),
        "open with": dict(lake.plugin.open_with(info)),
    }
    if json:
        print_json(document)
        return
    grid = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for key in ("table", "format", "location", "uuid", "snapshot"):
        grid.add_row(key, str(document[key]))
    grid.add_row("partitioned by", ", ".join(document["partitioned by"]) or "-")
    grid.add_row("columns", "\n".join(f"{name}  {kind}" for name, kind in document["columns"].items()))
    grid.add_row("pipelines", _pipelines_text(known))
    if document["rounds refused"] is not None:
        grid.add_row("rounds refused", document["rounds refused"])
    for each in document["indexes"] or ():
        rows = f"{each['rows_indexed']:,} rows in it, {each['rows_not_indexed']:,} without"
        grid.add_row(
            f"index {each['name']}", f"{each['kind']} of {each['column']}, {each['segments']} segments, {rows}"
        )
    for tool, line in document["open with"].items():
        grid.add_row(f"in {tool}", line)
    console().print(grid, markup=False)


def _indexes(lake: Lake, info: TableInfo) -> list[dict[str, Any]] | None:
    """None where the format has no indexes."""
    if not support_of(lake.plugin.features, Feature.INDEXING).full:
        return None
    found = lake.indexer(info).indexes()
    return [index_document(each) | {"segments": len(each.segments)} for each in found]


def _list_tables(lake: Lake, *, json: bool) -> None:
    tables = lake.list_tables()
    if json:
        print_json([str(path) for path in tables])
        return
    for path in tables:
        say(str(path))
    if not tables:
        say("no tables", err=True)


@takes_lake
def history(
    options: LakeOptions,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="The number of snapshots.")] = 20,
    json: Json = False,
) -> None:
    """List a table's newest snapshots."""
    lake, info = options.opened()
    snapshots = lake.history(info).snapshots(limit)
    if json:
        print_json([vars(snapshot) for snapshot in snapshots])
        return
    out = RichTable()
    for column in ("snapshot", "committed", "operation", "rows", "pipeline", "epoch"):
        out.add_column(column)
    for snapshot in snapshots:
        values = (snapshot.rows, snapshot.pipeline, snapshot.epoch)
        out.add_row(
            str(snapshot.snapshot_id),
            moment(snapshot.committed_at),
            snapshot.operation,
            *("" if value is None else str(value) for value in values),
        )
    console().print(out)


@takes_lake
def read(
    options: LakeOptions,
    columns: Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="column OP value; may be repeated (and).")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, max=MOST, help="The number of rows.")] = 20,
    count: Annotated[bool, typer.Option("--count", help="Print the number of rows that match, nothing else.")] = False,
    json: Json = False,
) -> None:
    """Print rows of a table, read through its plugin."""
    lake, info = options.opened()
    request = ScanRequest(
        columns=() if count else tuple(name.strip() for name in columns.split(",")) if columns else None,
        filters=tuple(parse_filter(text, info.schema) for text in where or ()),
        limit=None if count else limit,
        snapshot_id=lake.config.snapshot_id,
        as_of=lake.config.as_of,
    )
    _, batches = scan(lake.source(info), request)
    if count:
        say(sum(batch.num_rows for batch in batches))
        return
    rows = list(_rows(batches))
    if json:
        print_json(rows)
        return
    names = list(request.columns) if request.columns is not None else info.schema.names
    out = RichTable()
    for name in names:
        out.add_column(name, overflow="fold")
    for row in rows:
        out.add_row(*("" if row[name] is None else str(row[name]) for name in names))
    console().print(out, markup=False)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _known(lake: Lake, info: TableInfo) -> tuple[pipelines.Known, ...] | None:
    """All of the table's pipelines, or the one that ``lake.pipeline`` names. None where they can't be listed."""
    state = lake.state(info)
    if lake.config.pipeline is None:
        return pipelines.known(state)
    return (pipelines.Known(lake.config.pipeline, pipelines.show(state, lake.config.pipeline)),)


def _refusal(lake: Lake, info: TableInfo) -> str | None:
    """Why rounds into the table would be refused, as far as its description tells; `laketier doctor` begins one."""
    try:
        lake.tiering_factory(info)
    except (Refused, TableError, FeatureNotSupported) as error:
        return str(error)
    return None


def _pipeline_document(known: pipelines.Known) -> dict[str, Any] | None:
    return watermark_document(known.watermark) if known.lost is None else {"lost": str(known.lost)}


def _pipelines_text(known: tuple[pipelines.Known, ...] | None) -> str:
    if known is None:
        return "the format can't list them: name one to see it, by --set lake.pipeline=…"
    lines = [str(each.lost) if each.lost else watermark_text(each.pipeline, each.watermark) for each in known]
    return "\n".join(lines) or "none: no round with lake.pipeline was published here"
