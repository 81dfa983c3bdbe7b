"""``laketier search``: the best rows for words, or for a query in JSON."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import console, print_json, say
from laketier.spi import SearchExplain, query_of_text
from laketier.spi.search_query import with_ef
from laketier.tables.comparisons import parse_filter

EPILOG = "Example: [bold]laketier search db.papers 'snow on lakes' -c lake.yaml -k 5 --columns id,text[/]"


@takes_lake
def search(
    options: LakeOptions,
    query: Annotated[str, typer.Argument(help="Words, or a query as JSON such as {'type': 'phrase', 'text': …}.")],
    k: Annotated[int, typer.Option("-k", min=1, max=MOST, help="The number of rows, at most.")] = 10,
    columns: Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="column OP value; chooses the rows that are searched.")
    ] = None,
    ef: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Of a query for vectors: the candidates that a walk through a graph keeps."),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="QUERY is words, also if it begins with a brace.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Also tell the indexes, rows without, and times.")] = False,
    json: Json = False,
) -> None:
    """Search a table for words or vectors, the best rows first."""
    lake, info = options.opened()
    asked = query_of_text(query, words=words)
    if ef is not None:
        asked = with_ef(asked, ef)
    found = lake.searcher(info).search(
        asked,
        k=k,
        columns=[name.strip() for name in columns.split(",")] if columns else None,
        filters=[parse_filter(text, info.schema) for text in where or ()],
        snapshot_id=lake.config.snapshot_id,
    )
    rows = found.rows.to_pylist()
    told = _told(found.explain)
    for note in found.explain.notes:
        say(note, err=True)
    if json:
        document: dict[str, Any] = {"snapshot": found.snapshot_id, "rows": rows}
        print_json(document | {"explain": told} if explain else document)
        return
    out = RichTable()
    for name in found.rows.schema.names:
        out.add_column(name, overflow="fold")
    for row in rows:
        out.add_row(*(str(value) for value in row.values()))
    console().print(out, markup=False)
    if explain:
        grid = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
        for key, value in told.items():
            grid.add_row(key, str(value))
        console().print(grid, markup=False)


def _told(explain: SearchExplain) -> dict[str, Any]:
    return {
        "indexes": {use.name: f"{use.kind} of {use.column}, {use.rows} rows" for use in explain.indexes},
        "rows": explain.rows,
        "rows without index": explain.rows_flat,
        "share indexed": round(explain.share, 4),
        "notes": list(explain.notes),
        "milliseconds": {part: round(time, 2) for part, time in explain.milliseconds.items()},
    }
