"""What a writer takes, what it refuses, and what it says about it."""

from __future__ import annotations

import contextlib
import dataclasses

import pyarrow as pa
import pytest

from laketier.spi import (
    ConfigError,
    Feature,
    IncompatibleData,
    LakeWriter,
    Leaf,
    Op,
    PartitionField,
    Refused,
    ScanRequest,
    UnsupportedType,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier_conformance.begun import threads_have_ended
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, read_split, token
from laketier_conformance.option_values import ending_early, says_where_files_end


def _writer(table: Table) -> LakeWriter[WriteResult]:
    return table.factory.create_writer(WriterInitContext(attempt=new_attempt_id()))


def _written_and_completed(writer: LakeWriter[WriteResult], rows: pa.RecordBatch) -> None:
    """A writer may check a batch when it comes, or when it writes it."""
    writer.write(rows)
    writer.complete()


def test_nothing_written_gives_no_files(table: Table) -> None:
    before = table.lake.files()
    expect(_writer(table).complete().files, (), "files of a result of which nothing was written")
    empty = _writer(table)
    empty.write(batch([]))
    expect(empty.complete().files, (), "files of a result of an empty batch")
    expect(table.lake.files(), before, "files of the warehouse after results without rows")


def test_what_a_result_says(table: Table) -> None:
    attempt = new_attempt_id()
    writer = table.factory.create_writer(WriterInitContext(attempt=attempt, split_index=3))
    writer.write(batch(ids_of(0, rows=8)))
    writer.write(batch(ids_of(1, rows=2)))
    result = writer.complete()
    info = table.info
    expect(result.attempt, attempt, "the attempt in a result")
    expect(
        (result.table_uuid, result.schema_fingerprint, result.spec_id),
        (
            info.table_uuid,
            info.schema_fingerprint,
            info.spec_id,
        ),
        "the table, schema and partitioning in a result",
    )
    assert result.rows == sum(file.rows for file in result.files) == 10, (
        f"a result counts the rows of its files, ten in all: found {result.rows}"
    )
    assert all(file.bytes > 0 for file in result.files), "each file in a result has a size"


def test_tiny_batches_do_not_become_tiny_files(table: Table) -> None:
    """Nor are they too many for whoever reads them: there are more than 1,024."""
    ids = list(range(1_100))
    whole = batch(ids)
    result = table.stage_arrow(whole.slice(i, 1) for i in ids)
    assert len(result.files) <= 4, f"{len(ids)} batches of one row become a few files: found {len(result.files)}"
    table.commit([result], token(0))
    expect(table.ids, ids, "rows of tiny batches")


@pytest.mark.parametrize("small", ["files", "groups"])
def test_a_task_of_many_small_files_or_groups(lake: Lake, small: str) -> None:
    """As a task of many rows has them, where an option of the format says after how many rows one ends. Each file is
    told of, looked at before it is published, and read to its end."""
    options = ending_early(lake.plugin, files=small == "files")
    try:
        table = dataclasses.replace(lake, options={**lake.options, **options}).create()
    except ConfigError:  # some numbers go with others only
        options, table = {}, lake.create()
    rows = [batch(list(range(start, start + 70))) for start in range(0, 910, 70)]
    doing = f"one task of 910 rows, with the options {dict(options)}"
    result = table.stage_arrow(rows)
    expect(sum(file.rows for file in result.files), 910, f"rows of the files of {doing}")
    if small == "files" and any(says_where_files_end(name) for name in options):
        most = max(file.rows for file in result.files)
        assert most <= 300 + 2 * 70, f"a file ends about where the options of {doing} say: found one of {most} rows"
    if len(result.files) > 1:
        again, committer = table.stage_arrow(rows), table.committer()
        committer.discard([dataclasses.replace(again, files=again.files[-1:])])
        with refused(Refused, f"a result is published whose last file of {len(again.files)} is gone"):
            committer.publish(committer.open(), [again], None)
        committer.discard([again])
        committer.close()
    table.commit([result], token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches(rows), f"rows of {doing}")
    for value in (0, 540, 909):
        found = table.read(columns=("id",), filters=(Leaf("id", Op.GE, value), Leaf("id", Op.LE, value)))
        expect(found["id"].to_pylist(), [value], f"rows of {doing}, by their id {value}")
    expect(table.read(limit=601).num_rows, 601, f"rows of {doing}, with a limit of 601")


def test_a_huge_batch(table: Table) -> None:
    ids = list(range(300_000))
    result = table.stage_arrow([batch(ids)])
    expect(result.rows, len(ids), "the number of rows of a huge batch in its result")
    table.commit([result], token(0))
    expect(table.ids, ids, "rows of a huge batch")
    source = table.source
    plan = source.plan(ScanRequest(columns=()))
    counted = sum(part.num_rows for split in plan.splits for part in read_split(source, split, plan.schema))
    expect(counted, len(ids), "the number of rows of a huge batch, by a scan without columns")


def test_slices_and_odd_chunks(table: Table) -> None:
    """A slice shares its buffers with rows that are not part of it."""
    whole = batch(list(range(1000)))
    pieces = [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 498), whole.slice(499, 501)]
    table.publish_arrow(pieces, token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches([whole]), "rows of slices")


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_slices_of_lists_and_structs(lake: Lake) -> None:
    """What is in a list of a slice does not begin where the list's buffers do."""
    lists = [[i] * (i % 3) if i % 5 else None for i in range(60)]
    structs = [{"a": i} if i % 7 else None for i in range(60)]
    schema = pa.schema([("id", pa.int64()), ("l", pa.list_(pa.int64())), ("s", pa.struct([("a", pa.int64())]))])
    whole = pa.record_batch(
        [pa.array(range(60)), pa.array(lists, schema.field("l").type), pa.array(structs, schema.field("s").type)],
        schema=schema,
    )
    table = lake.create(schema, "db.nested")
    table.publish_arrow([whole.slice(0, 1), whole.slice(1, 29), whole.slice(30)], token(0))
    read = table.read().sort_by("id")
    for name in ("l", "s"):
        expect(read[name].to_pylist(), whole[name].to_pylist(), f"values of {schema.field(name).type} in slices")


@pytest.mark.parametrize("form", ["large", "view", "dictionary", "dictionary-with-null"])
def test_text_in_another_form(table: Table, form: str) -> None:
    """It is taken as the text that it is, or refused. A dictionary is its batch's own, and may have null as a value,
    which each code of it is then."""
    pairs: list[tuple[int, list[str | None]]] = [(0, ["a", "b", None]), (3, ["b", "c", "b"])]
    kind = {"large": pa.large_string(), "view": pa.string_view(), "dictionary": pa.dictionary(pa.int32(), pa.string())}
    batches = []
    for at, names in pairs:
        if form in kind:
            column = pa.array(names, kind[form])
        else:
            known = [*dict.fromkeys(names)]
            column = pa.DictionaryArray.from_arrays([known.index(name) for name in names], pa.array(known))
        batches.append(pa.record_batch({"id": pa.array(range(at, at + 3)), "name": column}))
    kept = batches[0].schema.field("name").type
    written = f"{kept}, null among its values" if form.endswith("null") else str(kept)
    try:
        table.publish_arrow(batches, token(0))
    except IncompatibleData:
        expect(table.ids, [], f"rows after text as {written} was refused")
        return
    read = table.read(columns=("id", "name")).sort_by("id")
    expect(read["name"].to_pylist(), ["a", "b", None, "b", "c", "b"], f"text that was written as {written}")
    nulls = table.read(columns=("id", "name"), filters=(Leaf("name", Op.IS_NULL),))["id"].to_pylist()
    expect(nulls, [2], f"rows whose text is null, which was written as {written}")


def test_a_moment_of_another_zone(lake: Lake) -> None:
    """It stays the moment that it is, whatever the clocks of its zone say."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    table = lake.create(schema, "db.moments")
    moment = 1_795_249_815_123_456
    zones = ["UTC", "+05:45", "America/New_York"]
    batches = [
        pa.record_batch({"id": [i], "at": pa.array([moment], pa.timestamp("us", zone))}) for i, zone in enumerate(zones)
    ]
    table.publish_arrow(batches, token(0))
    found = table.read()["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    expect(found, [moment] * 3, f"one moment that was written in the zones {zones}, in microseconds since 1970")


def test_columns_go_by_name(table: Table) -> None:
    rows = batch(ids_of(0))
    table.publish_arrow([rows.select(["value", "id", "name"])], token(0))
    expect(
        table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of a batch whose columns are in another order"
    )


def test_a_missing_nullable_column_is_null(table: Table) -> None:
    table.publish_arrow([batch(ids_of(0)).select(["id", "value"])], token(0))
    expect(table.read()["name"].null_count, 5, "the number of nulls of a column that a batch did not have")


def test_a_smaller_type_that_fits_is_taken(table: Table) -> None:
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int32()), "value": pa.array([0.5, 1.5], pa.float32())})
    table.publish_arrow([rows], token(0))
    expect(table.read().sort_by("id")["value"].to_pylist(), [0.5, 1.5], "values of a batch whose types are smaller")
    schema = pa.schema([("id", pa.int64()), ("value", pa.float32())])
    try:
        floats = table.lake.create(schema, "db.floats")
    except UnsupportedType:
        return
    with contextlib.suppress(IncompatibleData):
        floats.publish_arrow([pa.record_batch({"id": [1], "value": pa.array([0.1], pa.float64())})], token(0))
        expect(
            floats.read()["value"].to_pylist(),
            [0.1],
            "a double that was taken for a column of floats, which has not it",
        )


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(pa.record_batch({"name": ["x"]}), id="missing-not-null"),
        pytest.param(pa.record_batch({"id": pa.array([1, None])}), id="null-in-not-null"),
        # Arrow takes a schema's word for it.
        pytest.param(
            pa.record_batch([pa.array([1, None]), *(pa.nulls(2, kind) for kind in SCHEMA.types[1:])], schema=SCHEMA),
            id="null-in-what-is-called-not-null",
        ),
        pytest.param(pa.record_batch({"id": ["1"]}), id="wrong-type"),
        pytest.param(pa.record_batch({"id": pa.array([2**63], pa.uint64())}), id="value-too-large"),
        pytest.param(pa.record_batch({"id": [1], "name": [b"\xff"]}), id="bytes-for-text"),
        pytest.param(pa.record_batch({"id": [1], "other": [1]}), id="extra-column"),
        pytest.param(
            pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"]), pa.array(["y"])], ["id", "name", "name"]),
            id="two-of-one-name",
        ),
    ],
)
def test_what_does_not_fit_is_refused(table: Table, rows: pa.RecordBatch) -> None:
    before = table.lake.files()
    writer = _writer(table)
    writer.write(batch(ids_of(0)))
    with refused(IncompatibleData, "a batch that does not fit is written"):
        _written_and_completed(writer, rows)
    writer.abort()
    expect(table.lake.files(), before, "files after a batch that does not fit was refused")
    expect(table.ids, [], "rows after a batch that does not fit was refused")


def test_an_abort_deletes_what_was_staged(table: Table) -> None:
    """Nor does a thread that the writer began bring a file back."""
    before = table.lake.files()
    with threads_have_ended():
        writer = _writer(table)
        for start in range(3):
            writer.write(batch(list(range(start * 50_000, (start + 1) * 50_000))))
        writer.abort()
        writer.abort()
    expect(
        table.lake.files(), before, "files after a writer was aborted twice, and the threads that it began have ended"
    )


def test_an_abort_after_complete(table: Table) -> None:
    """A task may fail after it completed, before its message is away. Beside it are rows, and what others staged."""
    table.append(0)
    table.stage(ids_of(0))
    before = table.lake.files()
    with threads_have_ended():
        writer = _writer(table)
        writer.write(batch(ids_of(0)))
        writer.complete()
        writer.abort()
    expect(table.lake.files(), before, "files after a writer was aborted that had completed")


@pytest.mark.needs(Feature.PARTITIONING)
def test_an_abort_deletes_each_file(lake: Lake) -> None:
    """An attempt that writes several files has each of them deleted: while it writes, and after it completed."""
    table = lake.create(partition_by=(PartitionField("name"),))
    table.append(0)
    table.stage(ids_of(0))  # of another task
    before = lake.files()
    for completed in (False, True):
        writer = _writer(table)
        writer.write(batch(ids_of(0)))
        if completed:
            files = writer.complete().files
            assert len(files) > 1, f"rows of five partitions are staged in a file for each: found {len(files)}"
        writer.abort()
        done = "completed" if completed else "written"
        expect(lake.files(), before, f"files after a writer of several partitions was aborted that had {done}")


def test_an_abort_of_nothing(table: Table) -> None:
    before = table.lake.files()
    _writer(table).abort()
    expect(table.lake.files(), before, "files after a writer was aborted that had written nothing")


def test_a_failure_in_a_with_block_aborts(table: Table) -> None:
    before = table.lake.files()
    for ends_it in (ZeroDivisionError, KeyboardInterrupt):
        with contextlib.suppress(ends_it), _writer(table) as writer:
            writer.write(batch(ids_of(0)))
            raise ends_it
        expect(table.lake.files(), before, f"files after a block of a writer ended in {ends_it.__name__}")


def test_text_of_any_length_and_script(lake: Lake) -> None:
    """NUL alone may be refused, as the text of many databases can't have it."""
    names = [
        "",
        " ",
        "ünïcödé …",
        "日本語",
        "🦆" * 300,
        "line\nbreak",
        "tab\t",
        "e\u0301",
        "x" * 100_000,
        None,
    ]
    schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("name")])
    table = lake.create(schema, "db.text")
    with_nul = "a\x00b"
    if table.takes(pa.record_batch([[0], [with_nul]], schema=schema)):  # and does not lose it
        names.append(with_nul)
    rows = pa.record_batch([pa.array(range(len(names))), pa.array(names)], schema=schema)
    table.publish_arrow([rows], token(0))
    expect(table.read().sort_by("id")["name"].to_pylist(), names, "text of any length and script")
