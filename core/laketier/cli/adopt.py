"""``laketier adopt``: a table of files that lie in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import pyarrow as pa
import typer
from rich.filesize import decimal
from rich.progress import Progress

from laketier.cli.lakes import Json, keys_of
from laketier.cli.shown import ShownConsole, print_json, say
from laketier.codecs.arrow_types import parse_type
from laketier.spi import AdoptedTable, ConfigError
from laketier.tables.adoption import adopt_folder

EPILOG = "Example: [bold]laketier adopt /data/lake/sales/orders -f FORMAT --partitions[/]"
_SHOWN = 5

Types = Annotated[
    list[str] | None,
    typer.Option("--type", "-t", help="COLUMN=TYPE, for files that disagree. May be repeated.", show_default=False),
]


def adopt(
    folder: Annotated[str, typer.Argument(help="The folder of the files: WAREHOUSE/DATABASE/TABLE, a path or a URI.")],
    lake_format: Annotated[str, typer.Option("--format", "-f", help="lake.format", show_default=False)],
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Folders named column=value are the table's partitions.")
    ] = False,
    types: Types = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="Any other key: KEY=VALUE. May be repeated.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Make a table of the files in FOLDER, where they lie: no byte of them is written, and none is moved.

    The table's name is that of the folder and of the one above it. All of the table is there in the end, or nothing.
    """
    with progress("files") as on_progress:
        made = adopt_folder(
            folder,
            lake_format,
            partitions=partitions,
            types=types_of(types),
            options=keys_of(keys),
            on_progress=on_progress,
        )
    if json:
        print_json(document_of(made))
        return
    say(
        f"{'adopted' if made.made else 'was adopted before:'} {made.files:,} files with {made.rows:,} rows "
        f"({decimal(made.bytes)}) as {made.table.path}"
    )
    print_rest(made)


def document_of(made: AdoptedTable) -> dict[str, object]:
    """For machines."""
    info = made.table
    return {
        "table": str(info.path),
        "location": info.location,
        "uuid": info.table_uuid,
        "made": made.made,
        "files": made.files,
        "rows": made.rows,
        "bytes": made.bytes,
        "partitioned by": [str(each) for each in info.descriptor.partition_by],
        "columns": columns_of(info.schema),
        "left out": dict(made.left_out),
        "told": list(made.told),
    }


def columns_of(schema: pa.Schema) -> dict[str, str]:
    """Columns and their types, in their order."""
    return {each.name: f"{each.type}{'' if each.nullable else ' not null'}" for each in schema}


def print_rest(made: AdoptedTable) -> None:
    """Its columns, what is not in it, and what has to be known."""
    for name, kind in columns_of(made.table.schema).items():
        say(f"  {name}  {kind}")
    print_left_out(made.left_out)
    for sentence in made.told:
        say(sentence, err=True)


def print_left_out(left_out: Mapping[str, str]) -> None:
    """The first few of them."""
    for path, why in sorted(left_out.items())[:_SHOWN]:
        say(f"left out: {path}: {why}", err=True)
    if len(left_out) > _SHOWN:
        say(f"left out: {len(left_out) - _SHOWN:,} more", err=True)


def types_of(given: list[str] | None) -> dict[str, pa.DataType]:
    """Undo ``--type``."""
    found = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not equals:
            raise ConfigError(f"--type {item!r} is not COLUMN=TYPE", fix="For example --type id=string.")
        found[name] = parse_type(text, key="--type", origin="the command line")
    return found


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's error output, and nothing elsewhere."""
    with Progress(console=ShownConsole(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
