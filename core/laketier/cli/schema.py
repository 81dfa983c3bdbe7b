"""``laketier schema show | infer | diff | history | rebuild``: the columns of tables and of files."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.adopt import Types, columns_of, document_of, print_left_out, print_rest, progress, types_of
from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.cli.watermarks import moment
from laketier.connectors.files.folder import Folder
from laketier.connectors.files.inferring import SAMPLE, Inferred, infer_folder
from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry import Lake
from laketier.spi import ConfigError, Feature, ScanRequest, TableInfo, TablePath, require
from laketier.tables.differences import Difference, differences

app = typer.Typer(help="Look at the columns of tables and of files.", no_args_is_help=True)

Sample = Annotated[int, typer.Option("--sample", min=1, max=MOST, help="The number of files that are looked at.")]
All = Annotated[bool, typer.Option("--all", help="Look at all files, and at all lines of text.")]
FilesAre = Annotated[
    FileFormat | None,
    typer.Option("--files", help="How the files are written; by their names unless given.", show_default=False),
]
Partitions = Annotated[bool, typer.Option("--partitions", help="Folders named column=value are columns, too.")]


@app.command(epilog="Example: [bold]laketier schema show sales.orders -c lake.yaml[/]")
@takes_lake
def show(options: LakeOptions, json: Json = False) -> None:
    """Show a table's columns (at lake.snapshot-id or lake.as-of), partitions, buckets, key and properties."""
    lake, info = options.opened()
    schema = _schema_of(lake, info)
    table = info.descriptor
    document: dict[str, Any] = {
        "table": str(info.path),
        "columns": columns_of(schema),
        "partitioned by": [str(field) for field in table.partition_by],
        "buckets": None if table.buckets is None else f"{table.buckets.count} by {', '.join(table.buckets.keys)}",
        "primary key": list(table.primary_key),
        "properties": dict(table.properties),
        "comment": table.comment,
    }
    if json:
        print_json(document)
        return
    _print_columns(schema)
    for name in ("partitioned by", "buckets", "primary key", "properties", "comment"):
        if document[name]:
            value = document[name]
            say(f"{name}: {', '.join(value) if isinstance(value, list) else value}")


@app.command(epilog="Example: [bold]laketier schema infer /data/landing/orders --files json --all[/]")
def infer(
    folder: Annotated[str, typer.Argument(help="A folder of files: a path, or a URI.")],
    files: FilesAre = None,
    sample: Sample = SAMPLE,
    everything: All = False,
    partitions: Partitions = False,
    types: Types = None,
    json: Json = False,
) -> None:
    """Tell the columns that all files of FOLDER can be read as, by their headers, or by their first lines."""
    found = _inferred(folder, files, sample, everything=everything, partitions=partitions, types=types)
    if json:
        print_json(
            {
                "columns": columns_of(found.schema),
                "partitions": list(found.partitions),
                "format": found.format.value,
                "files": found.files,
                "read": found.read,
                "schemas": len(found.schemas),
                "left out": dict(found.left_out),
            }
        )
        return
    say(f"{found.share} of {found.format.value}, with {len(found.schemas)} different schemas")
    _print_columns(found.schema)
    print_left_out(found.left_out)


@app.command(epilog="Example: [bold]laketier schema diff sales.orders -c lake.yaml --with-files /landing/orders[/]")
@takes_lake
def diff(
    options: LakeOptions,
    with_files: Annotated[
        str | None, typer.Option("--with-files", help="A folder of files.", show_default=False)
    ] = None,
    with_snapshot: Annotated[
        int | None, typer.Option("--with-snapshot", help="A snapshot of the table.", show_default=False)
    ] = None,
    with_table: Annotated[
        str | None, typer.Option("--with-table", help="Another table of the warehouse.", show_default=False)
    ] = None,
    files: FilesAre = None,
    sample: Sample = SAMPLE,
    everything: All = False,
    partitions: Partitions = False,
    json: Json = False,
) -> None:
    """Compare a table's columns with those of files, of a snapshot or of another table. Ends with 1 where they differ.

    Says of each difference what a round with such rows would do.
    """
    if sum(each is not None for each in (with_files, with_snapshot, with_table)) != 1:
        raise ConfigError("one thing to compare with is needed", fix="--with-files, --with-snapshot or --with-table.")
    lake, info = options.opened()
    here = _schema_of(lake, info)
    if with_files is not None:
        there = _inferred(with_files, files, sample, everything=everything, partitions=partitions).schema
    elif with_snapshot is not None:
        there = _schema_at(lake, info, with_snapshot)
    else:
        with naming_storage_errors("the table was loaded"):
            there = lake.storage.catalog().load_table(TablePath.parse(str(with_table))).schema
    found = differences(here, there)
    if json:
        print_json([vars(each) for each in found])
    else:
        _print_differences(found)
    if found:
        raise typer.Exit(1)


@app.command(epilog="Example: [bold]laketier schema history sales.orders -c lake.yaml[/]")
@takes_lake
def history(
    options: LakeOptions,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST, help="The number of snapshots looked at.")
    ] = 1000,
    json: Json = False,
) -> None:
    """List the snapshots at which a table's columns changed, the newest first, and how."""
    lake, info = options.opened()
    require(lake.config.format, lake.plugin.features, Feature.TIME_TRAVEL)
    snapshots = lake.history(info).snapshots(limit)
    lines: list[dict[str, Any]] = []
    before: pa.Schema | None = None
    for snapshot in reversed(snapshots):
        schema = _schema_at(lake, info, snapshot.snapshot_id)
        if before is None or not before.equals(schema):
            changed = [] if before is None else [str(each) for each in differences(before, schema)]
            lines.append(
                {
                    "snapshot": snapshot.snapshot_id,
                    "committed_at": snapshot.committed_at,
                    "changes": changed,
                    "columns": columns_of(schema),
                }
            )
        before = schema
    if json:
        print_json(lines[::-1])
        return
    out = RichTable()
    for name in ("snapshot", "committed", "changes"):
        out.add_column(name, overflow="fold")
    for line in reversed(lines):
        text = "\n".join(line["changes"]) or f"{len(line['columns'])} columns, as far as is looked at"
        out.add_row(str(line["snapshot"]), moment(line["committed_at"]), text)
    console().print(out, markup=False)


@app.command(epilog="Example: [bold]laketier schema rebuild sales.orders -f FORMAT -w /data/lake[/]")
@takes_lake
def rebuild(
    options: LakeOptions,
    primary_key: Annotated[
        str | None, typer.Option("--primary-key", help="Comma-separated names, if it had one.", show_default=False)
    ] = None,
    types: Types = None,
    leave_staged: Annotated[
        bool, typer.Option("--leave-staged", help="Go on although files are staged. They stay out of the table.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Make a table's metadata again that was deleted or damaged, from what is left of it and from its files.

    Stop all writers first. Where watermarks are lost with it, each pipeline is refused until you say where it stands:
    otherwise it would begin anew, and double its rows.
    """
    lake = options.opened_lake()
    if not yes:
        typer.confirm(f"All writers of {lake.config.table} are stopped?", abort=True, err=True)
    key = tuple(name.strip() for name in primary_key.split(",")) if primary_key else ()
    with progress("files") as on_progress, naming_storage_errors("the table was rebuilt"):
        made = lake.adoption().rebuild(
            lake.config.table,
            primary_key=key,
            types=types_of(types),
            leave_staged=leave_staged,
            on_progress=on_progress,
        )
    if json:
        print_json(document_of(made))
        return
    say(f"rebuilt {made.table.path} of {made.files:,} files with {made.rows:,} rows ({decimal(made.bytes)})")
    print_rest(made)


def _inferred(
    folder: str,
    files: FileFormat | None,
    sample: int,
    *,
    everything: bool,
    partitions: bool,
    types: list[str] | None = None,
) -> Inferred:
    with progress("files") as on_progress:
        return infer_folder(
            Folder(folder, "."),
            None if files is None else LandingTableOptions(format=files),
            sample=None if everything else sample,
            whole=everything,
            partitions=partitions,
            given=types_of(types),
            on_progress=on_progress,
        )


def _schema_of(lake: Lake, info: TableInfo) -> pa.Schema:
    config = lake.config
    if config.snapshot_id is None and config.as_of is None:
        return info.schema
    request = ScanRequest(snapshot_id=config.snapshot_id, as_of=config.as_of)
    with naming_storage_errors("the table was read"):
        return lake.source(info).plan(request).schema


def _schema_at(lake: Lake, info: TableInfo, snapshot_id: int) -> pa.Schema:
    with naming_storage_errors("the table was read"):
        return lake.source(info).plan(ScanRequest(snapshot_id=snapshot_id, limit=0)).schema


def _print_columns(schema: pa.Schema) -> None:
    out = RichTable()
    for name in ("column", "type", "null"):
        out.add_column(name, overflow="fold")
    for column in schema:
        out.add_row(column.name, str(column.type), "" if column.nullable else "not null")
    console().print(out, markup=False)


def _print_differences(found: list[Difference]) -> None:
    for each in found:
        say(each)
    if not found:
        say("no differences", err=True)
