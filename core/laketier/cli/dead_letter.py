"""``laketier dead-letter``: the records that could not be made rows, and another try at them."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from laketier.cli.lakes import MOST, Json
from laketier.cli.shown import console, print_json, say
from laketier.spi import ConfigError, TableNotFound

app = typer.Typer(name="dead-letter", help="Show records that are no rows of their table, and replay them.")

File = Annotated[Path, typer.Argument(help="The service file.", show_default=False)]
Named = Annotated[str, typer.Argument(help="The table: source.table, or the lake table's name.", show_default=False)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@app.command("list", epilog="Example: [bold]laketier dead-letter list service.yaml[/]")
def list_(file: File, json: Json = False) -> None:
    """Show for each table the number of dead letters, the number of replayed ones, and the errors."""
    from laketier.dead_letters.records import DeadLetterState, summarize_dead_letters
    from laketier.rounds.configured_logs import list_configured_tables

    seen = [(table.key, summarize_dead_letters(table.config)) for table in list_configured_tables(file)]
    found = [(name, each) for name, each in seen if each is not None]
    if json:
        print_json(
            [
                {
                    "table": name,
                    "dead_letters": each.table,
                    "records": each.total,
                    **{state.value: each.states[state] for state in DeadLetterState},
                    "newest_at": each.newest_at,
                    "errors": [{"error": error, "records": count} for error, count in each.errors],
                }
                for name, each in found
            ]
        )
        return
    shown = Table("table", "in", caption=None if found else "No table has dead letters.", caption_justify="left")
    for column in ("records", "open", "replayed"):
        shown.add_column(column, justify="right")
    shown.add_column("newest written")
    shown.add_column("errors, most frequent first", overflow="fold")
    for name, each in found:
        replaying = each.states[DeadLetterState.REPLAYING]
        shown.add_row(
            escape(name), escape(each.table), f"{each.total:,}", f"{each.states[DeadLetterState.OPEN] + replaying:,}",
            f"{each.states[DeadLetterState.REPLAYED]:,}", _moment(each.newest_at),
            "\n".join(f"{count:,} x {escape(error)}" for error, count in each.errors),
        )  # fmt: skip
    console().print(shown)


@app.command(epilog="Example: [bold]laketier dead-letter show service.yaml clicks.orders --where 0/1234[/]")
def show(
    file: File,
    table: Named,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST, help="The number of rows, the newest first.")
    ] = 20,
    where: Annotated[
        str | None, typer.Option(metavar="BUCKET/OFFSET", help="Only the record at this place.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Show dead letters: place, state, error, key and value. Bytes that are not UTF-8 are shown in hexadecimal."""
    from laketier.dead_letters.records import read_replays, scan_dead_letters
    from laketier.rounds.configured_logs import open_configured_table

    bucket, offset = (None, None) if where is None else _place(where)
    configured, log = open_configured_table(file, table)
    log.close()
    dead_letters = scan_dead_letters(configured.config, bucket=bucket, offset=offset)
    if dead_letters is None:
        raise TableNotFound(f"{configured.key} has no dead letters", where=str(configured.config.table))
    replays = read_replays(configured.config)
    newest = heapq.nlargest(limit, dead_letters, key=lambda each: (each.record.at or 0, each.record.offset))
    found = [
        {
            "bucket": each.record.bucket,
            "offset": each.record.offset,
            "at": each.record.at,
            "state": replays.state(each).value,
            "error": each.record.error,
            "schema_version": each.record.schema_version,
            "key": _text(each.record.key),
            "value": _text(each.record.value),
        }
        for each in newest
    ]
    if json:
        print_json(found)
        return
    for dead_letter in found:
        _print_dead_letter(dead_letter)
    say(f"{configured.key}: {len(found)} dead letters shown")


@app.command(epilog="Example: [bold]laketier dead-letter replay service.yaml clicks.orders --dry-run[/]")
def replay(
    file: File,
    table: Named,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what fits; publish nothing.")] = False,
    json: Json = False,
) -> None:
    """Decode dead letters with the table's present `read` settings, and append each decoded row once.
    Dead letters that still can't be decoded or stored stay as they are."""
    from laketier.dead_letters.replay import replay as replayed
    from laketier.rounds.configured_logs import open_configured_table

    configured, log = open_configured_table(file, table)
    try:
        done = replayed(configured.config, log, dry_run=dry_run)
    finally:
        log.close()
    if json:
        print_json(
            {
                "table": configured.key,
                "dry_run": dry_run,
                "replayed": done.replayed,
                "rows": done.rows,
                "unfit": done.unfit,
                "waiting": done.waiting,
            }
        )
        return
    fit = "would be replayed" if dry_run else "replayed"
    say(f"{configured.key}: {done.replayed} {fit} ({done.rows} rows), {done.unfit} still can't be decoded or stored")
    if done.waiting:
        say(f"{done.waiting} more belong to a round that has not ended: replay them after it")
    for record in done.errors:
        say(f"  {record.bucket}/{record.offset}: {record.error}")


def _place(where: str) -> tuple[str, int]:
    bucket, slash, offset = where.rpartition("/")
    if not slash or not offset.isdecimal():
        raise ConfigError(f"--where {where!r} is not BUCKET/OFFSET", fix="For example --where 0/1234.")
    return bucket, int(offset)


def _text(data: bytes | None) -> str | None:
    """As text where it is such: what a terminal would take as a command is none."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if all(each.isprintable() or each in "\t\n" for each in text) else f"0x{data.hex()}"


def _print_dead_letter(dead_letter: dict[str, Any]) -> None:
    version = "" if dead_letter["schema_version"] is None else f", schema version {dead_letter['schema_version']}"
    out = console()
    head = f"{dead_letter['bucket']}/{dead_letter['offset']}"
    told = f"{dead_letter['state']}, written {_moment(dead_letter['at'])}{version}"
    out.print(f"[bold]{escape(head)}[/]  {escape(told)}", soft_wrap=True)
    out.print(f"  [red]{escape(dead_letter['error'])}[/]", soft_wrap=True)
    for name in ("key", "value"):
        if dead_letter[name] is not None:
            out.print(f"  {name}: {escape(dead_letter[name])}", soft_wrap=True)


def _moment(at: int | None) -> str:
    """A record's time may lie outside of what dates can say."""
    try:
        return "-" if at is None else (_EPOCH + timedelta(milliseconds=at)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return str(at)
