"""``laketier index``: indexes of a table, built by this host alone."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.filesize import decimal
from rich.table import Table as RichTable

from laketier.cli.index_builds import (
    BuildOptions,
    Parts,
    Processes,
    build_and_print,
    most_parts,
    parts_built_by,
    takes_build,
)
from laketier.cli.index_policy import policy
from laketier.cli.index_shown import index_document, index_progress, print_index, settings_of, upkeep_document
from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.maintenance.index_builds import default_processes, find_index, index_kind, spec_of
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.index_upkeep import maintain_lake_indexes
from laketier.maintenance.table_policies import INDEXES, policies_of_table
from laketier.spi import ConfigError, IndexMode, IndexSpec, LakeIndexer

app = typer.Typer(help="Build and keep the indexes of tables, without Spark.", no_args_is_help=True)
app.command(
    "policy", epilog="Example: [bold]laketier index policy db.papers text_idx --to max-segments=4 -c lake.yaml[/]"
)(policy)


@app.command(epilog="Example: [bold]laketier index create db.papers text inverted -c lake.yaml[/]")
@takes_lake
@takes_build
def create(
    options: LakeOptions,
    column: Annotated[str, typer.Argument(help="The column.")],
    kind: Annotated[str, typer.Argument(help="inverted, btree, bitmap, …: see the how-to on indexes.")],
    *,
    name: Annotated[str | None, typer.Option(help="Its name; COLUMN_idx by default.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A setting of the kind: NAME=VALUE. May be repeated.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of the index of that name.")] = False,
    build: BuildOptions,
    json: Json = False,
) -> None:
    """Build an index, and publish it in one commit."""
    spec = IndexSpec(name or f"{column}_idx", column, index_kind(kind), settings_of(option))
    mode = IndexMode.REPLACE if replace else IndexMode.CREATE
    build_and_print(_indexer(options), spec, mode, build, json=json)


@app.command(epilog="Example: [bold]laketier index append db.papers text_idx -c lake.yaml[/]")
@takes_lake
@takes_build
def append(
    options: LakeOptions,
    name: Annotated[str, typer.Argument(help="The index.")],
    *,
    build: BuildOptions,
    json: Json = False,
) -> None:
    """Index the rows that an index lacks, with its own settings."""
    indexer = _indexer(options)
    build_and_print(indexer, spec_of(find_index(indexer, name)), IndexMode.APPEND, build, json=json)


@app.command(epilog="Example: [bold]laketier index optimize db.papers text_idx -c lake.yaml --max-segments 4[/]")
@takes_lake
def optimize(
    options: LakeOptions,
    name: Annotated[str | None, typer.Argument(help="The index; all of the table by default.")] = None,
    *,
    max_segments: Annotated[
        int, typer.Option("--max-segments", min=1, max=MOST, help="Merge where there are more.")
    ] = 8,
    max_deleted: Annotated[
        float, typer.Option("--max-deleted", min=0, max=1, help="Build anew where a larger share of rows was deleted.")
    ] = 0.2,
    policies_of: Annotated[
        bool,
        typer.Option("--table-policies", help="Do what the table's property laketier.indexes says, and nothing else."),
    ] = False,
    processes: Processes = None,
    parts: Parts = None,
    json: Json = False,
) -> None:
    """Bring indexes up to date: add the rows that they lack, merge segments, build anew what deletes wore out."""
    lake, info = options.opened()
    if policies_of:
        own = policies_of_table(info)
        policies = [each for each in own if name in (None, each.spec.name)]
        if not policies:
            raise ConfigError(
                f"the table has no policy{f' of {name!r}' if name else ''}",
                where=f"property {INDEXES} of {info.path}",
                why=f"it has {', '.join(each.spec.name for each in own) or 'none'}",
                fix="Leave --table-policies out.",
            )
    else:
        indexer = lake.indexer(info)
        found = [find_index(indexer, name)] if name else list(indexer.indexes())
        policies = [IndexPolicy(spec_of(each), 1, None, max_segments, max_deleted) for each in found]
    several = processes or default_processes()
    with index_progress() as told:
        most = most_parts(several, parts)
        done = maintain_lake_indexes(lake, policies, build=parts_built_by(several), max_parts=most, told=told)
    if json:
        print_json({"indexes": [upkeep_document(each) for each in done]})
    for each in done:
        if not json:
            steps = ", ".join(f"{step.step.value} ({step.why})" for step in each.steps) or "nothing to do"
            say(f"{each.name}: {steps}")
    failed = next((each.error for each in done if each.error is not None), None)
    if failed is not None:
        raise failed


@app.command("list", epilog="Example: [bold]laketier index list db.papers -c lake.yaml[/]")
@takes_lake
def list_indexes(options: LakeOptions, json: Json = False) -> None:
    """List the indexes of a table."""
    found = _indexer(options).indexes()
    if json:
        print_json({"indexes": [index_document(each) for each in found]})
        return
    if not found:
        say("no indexes")
        return
    out = RichTable()
    for heading in ("name", "column", "kind", "segments", "rows", "rows without", "size"):
        out.add_column(heading, overflow="fold")
    for each in found:
        size = "" if each.bytes is None else decimal(each.bytes)
        figures = (str(len(each.segments)), f"{each.rows_indexed:,}", f"{each.rows_not_indexed:,}", size)
        out.add_row(each.name, each.column, each.kind, *figures)
    console().print(out, markup=False)
    for each in found:
        if each.damage is not None:
            say(f"{each.name} is damaged: {each.damage}", err=True)


@app.command(epilog="Example: [bold]laketier index describe db.papers text_idx -c lake.yaml[/]")
@takes_lake
def describe(
    options: LakeOptions, name: Annotated[str, typer.Argument(help="The index.")], *, json: Json = False
) -> None:
    """Show an index: its settings, its segments, and the rows that it lacks."""
    print_index(find_index(_indexer(options), name), json=json)


@app.command(epilog="Example: [bold]laketier index drop db.papers text_idx -c lake.yaml --yes[/]")
@takes_lake
def drop(
    options: LakeOptions,
    name: Annotated[str, typer.Argument(help="The index.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Drop an index. Queries go on without it; its files stay until orphans are collected."""
    indexer = _indexer(options)
    found = find_index(indexer, name)
    if not yes:
        typer.confirm(f"Drop index {name}, which covers {found.rows_indexed:,} rows?", abort=True, err=True)
    indexer.drop(name)
    if json:
        print_json({"dropped": name})
    else:
        say(f"dropped {name}")


def _indexer(options: LakeOptions) -> LakeIndexer:
    lake, info = options.opened()
    return lake.indexer(info)
