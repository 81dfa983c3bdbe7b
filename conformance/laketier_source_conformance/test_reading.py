"""A read: its columns, its memory, its end."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from laketier.spi import LogSplit, TableLog
from laketier_conformance.expect import expect
from laketier_source_conformance.reads import Read, by_turns, carried, read_range, read_splits, whole
from laketier_source_conformance.system import Table, text_of

_TEXTS = (
    *(
        "NULL",
        "null",
        "None",
        "NaN",
        "nan",
        "N/A",
        "NA",
        "\\N",
        "true",
        "1",
        "1.0",
        "1e5",
        "-0",
        "0x10",
        "2026-11-29",
        "007",
    ),
    *(
        " blanks around ",
        "\ttab\t",
        "\u00a0no-break\u00a0",
        "\u3000wide\u3000",
        "lf\n",
        "crlf\r\n",
        "cr\r",
        "\n\n",
        "\r\n",
    ),
    *("\u0085next line", "\u2028line\u2029paragraph", "\x0bvertical\x0cfeed", "\x1funit", "\x7f", "\x1a"),
    *(
        "\ufeffa mark",
        "\u00e9",
        "e\u0301",
        "\u212b",
        "\ufb01",
        "\u0130\u0131\u00df\u1e9e",
        "\U0001f600",
        "\u200b",
        "\u202eright\u202c",
    ),
    *(
        "a,b;c|d",
        '"quoted"',
        "it's",
        '""',
        "back\\slash",
        "\\n",
        "\\u0041",
        "\\",
        "%41",
        "&amp;",
        "<b>",
        "{}",
        "[1]",
        "${x}",
    ),
    "long" * 20_000,
    "more" * 300_000,
)
"""Each of them is something else to some reader. The last one is longer than a mebibyte, which is the most that some
take at once."""


def test_batches_have_the_columns_and_types_of_the_table(table: Table) -> None:
    table.append(5)
    log = table.log()
    for batch in read_range(log).batches:
        expect(
            [(field.name, field.type) for field in batch.schema],
            [(field.name, field.type) for field in log.table.schema],
            "a batch has the columns of the table, in its order and of its types",
        )
        batch.validate(full=True)


def test_chosen_columns_come_as_they_were_asked_for(table: Table) -> None:
    table.append(5)
    log = table.log()
    names = log.table.schema.names
    splits = list(log.plan(whole(log.bounds())))
    rows = read_splits(carried(log), splits).rows
    for chosen in ([names[0]], names[::-1], names[-1:], names[: len(names) // 2 + 1]):
        found = read_splits(carried(log), splits, columns=chosen)
        for batch in found.batches:
            expect(batch.schema.names, chosen, f"the columns {chosen} are asked for")
        expect(
            [text_of(row) for row in found.rows],
            [text_of({name: row[name] for name in chosen}) for row in rows],
            f"rows of which the columns {chosen} are asked for",
        )


def test_rows_are_counted_without_columns(table: Table) -> None:
    table.append(5)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    counted = sum(batch.num_rows for batch in read_splits(carried(log), splits, columns=[]).batches)
    expect(counted, 5, "rows of a read of no columns")


def test_chosen_columns_change_no_bad_record(table: Table) -> None:
    table.append(2)
    table.ask("append_bad")
    table.append(2)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    whole_read = read_splits(carried(log), splits)
    for name in log.table.schema.names:
        found = read_splits(carried(log), splits, columns=[name])
        expect(
            (len(found.rows), [each.offset for each in found.bad]),
            (len(whole_read.rows), [each.offset for each in whole_read.bad]),
            f"the rows and bad records of a read of the column {name!r} alone",
        )


def test_each_batch_has_memory_of_its_own(table: Table) -> None:
    """Also after the read went on, ended, and its log was closed."""
    for _ in range(3):
        table.append(20)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = log.log
    kept: list[pa.RecordBatch] = []
    copies: list[list[str]] = []
    for split in splits:
        for batch in task.read(split):
            kept.append(batch)
            copies.append([text_of(row) for row in batch.to_pylist()])
    _are_unchanged(kept, copies, "the read went on and ended")
    read_splits(log, splits)
    _are_unchanged(kept, copies, "another read")
    log.close()
    gc.collect()
    _are_unchanged(kept, copies, "its log was closed")


def _are_unchanged(kept: list[pa.RecordBatch], copies: list[list[str]], after: str) -> None:
    for batch, copy in zip(kept, copies, strict=True):
        found = [text_of(row) for row in batch.to_pylist()]
        expect(found, copy, f"a batch has memory of its own: it is looked at again after {after}")


def test_two_reads_of_a_log_go_on_by_turns(table: Table) -> None:
    for _ in range(3):
        table.append(10)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = carried(log)
    for batches in by_turns([_each(task, splits) for _ in range(2)]):
        table.expect_rows(Read(batches).rows, "two reads of one log go on by turns")


def test_a_read_may_be_given_up(table: Table) -> None:
    """As that of a task whose writer failed."""
    for _ in range(2):
        table.append(10)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = carried(log)
    given_up = task.read(splits[0])
    next(given_up, None)
    close = getattr(given_up, "close", None)
    if close is not None:
        close()
    table.expect_rows(read_splits(task, splits).rows, "a log is read after a read of it was given up")


def test_a_split_is_read_again_by_the_same_log(table: Table) -> None:
    table.append(10)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = carried(log)
    for time in ("once", "twice", "a third time"):
        table.expect_rows(read_splits(task, splits).rows, f"the splits of a plan are read {time} by one task")


def test_values_at_the_limits_of_their_types(table: Table) -> None:
    table.append(1)
    rows = list(table.ask("append_limits"))
    table.rows += rows
    table.append(1)
    log = table.log()
    found = read_range(log)
    expect([each.error for each in found.bad], [], "values at the limits of their types are read: bad records")
    table.expect_rows(found.rows, "values at the limits of their types are read")
    told = {field.name for field in log.table.schema if not field.nullable}
    nulls = sorted({name for row in found.rows for name in told if row[name] is None})
    expect(nulls, [], "columns that have nulls, and are not nullable: a lake would have none in them")


def test_texts_are_read_as_they_were_written(table: Table) -> None:
    """As they were written: whatever a parser, a terminal or a library of text would make of them."""
    table.append(1)
    rows = [dict(row) for row in table.ask("append_texts", _TEXTS)]
    table.rows += rows
    log = table.log()
    found = read_range(log)
    expect([each.error for each in found.bad], [], "texts of all kinds are read: bad records")
    read = Counter(map(text_of, found.rows))
    missing = [text for text in map(text_of, rows) if not read[text]]
    assert not missing, (
        f"texts are read as they were written: {len(missing)} rows of {len(rows)} came otherwise, the first of them is "
        f"{missing[0]:.200}"
    )
    table.expect_rows(found.rows, "texts are read as they were written")


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_an_append_of_any_size_is_read_whole(table: Table, count: int) -> None:
    table.append(count)
    table.expect_rows(read_range(table.log()).rows, f"a table of {count} rows, appended at once")


def test_many_small_appends_are_read_whole(table: Table) -> None:
    for _ in range(12):
        table.append(1)
    table.expect_rows(read_range(table.log()).rows, "a table of twelve appends of a row")


def _each(task: TableLog, splits: list[LogSplit]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        yield from task.read(split)
