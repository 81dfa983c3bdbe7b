"""The schema of a folder: whatever lies in it, and whoever changes it meanwhile."""

from __future__ import annotations

import gzip
import os
import random
import tempfile
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laketier.connectors.files.folder import Folder
from laketier.connectors.files.inferring import Inferred, infer_folder, spread
from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.spi import ConfigError, IncompatibleData, LaketierError


def infer(folder: Path, **options: object) -> Inferred:
    return infer_folder(Folder(str(folder), "."), **options)  # type: ignore[arg-type]


def put(path: Path, **columns: list[object] | pa.Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def put_text(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_parquet_by_footers(tmp_path: Path) -> None:
    put(tmp_path / "b.parquet", id=pa.array([1], pa.int64()), late=["x"])
    put(tmp_path / "a/a.parquet", id=pa.array([1], pa.int32()), score=pa.array([1.5], pa.float32()))
    put(tmp_path / "c.parquet", id=pa.array([1], pa.int16()), score=pa.array([2], pa.int8()), none=pa.nulls(1))
    found = infer(tmp_path)
    names = [("id", pa.int64()), ("score", pa.float64()), ("late", pa.string()), ("none", pa.string())]
    assert found.schema == pa.schema(names)
    assert (found.format, found.files, found.read, found.share) == (FileFormat.PARQUET, 3, 3, "read 3 files")


def test_arrow_and_avro_by_headers(tmp_path: Path) -> None:
    for name, kind in (("a", pa.int8()), ("b", pa.int32())):
        table = pa.table({"id": pa.array([1], kind)})
        with pa.ipc.new_file(str(tmp_path / f"{name}.arrow"), table.schema) as writer:
            writer.write_table(table)
    assert infer(tmp_path).schema == pa.schema([("id", pa.int32())])
    other = tmp_path / "avro"
    other.mkdir()
    for name, kind in (("a", "int"), ("b", "long")):
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": kind}]}
        with (other / f"{name}.avro").open("wb") as file:
            fastavro.writer(file, schema, [{"id": 1}])
    assert infer(other).schema == pa.schema([pa.field("id", pa.int64(), nullable=False)])


def test_json_by_lines_of_all_files(tmp_path: Path) -> None:
    put_text(tmp_path / "1.jsonl", '{"id": 1, "at": "2026-01-01T00:00:00Z", "tags": [], "in": {"a": null}}')
    put_text(tmp_path / "2.json.gz", '{"id": 2.5, "at": "soon", "tags": [7], "in": {"b": 1}}')
    put_text(tmp_path / "3.ndjson", "")
    found = infer(tmp_path)
    inner = pa.struct([("a", pa.string()), ("b", pa.int64())])
    assert found.schema == pa.schema(
        [("id", pa.float64()), ("at", pa.string()), ("tags", pa.list_(pa.int64())), ("in", inner)]
    )
    assert found.left_out == {"3.ndjson": "it has no records"}


def test_csv_becomes_text_where_values_differ(tmp_path: Path) -> None:
    put_text(tmp_path / "1.csv", "id,day,flag,code", "1,2026-01-01,true,")
    put_text(tmp_path / "2.csv", "id,day,flag,code", "2,2026-01-02T10:00:00,7,7")
    put_text(tmp_path / "3.csv", "id,day,flag,code", "x,2026-01-02,true,007")
    found = infer(tmp_path).schema
    assert found == pa.schema(
        [("id", pa.string()), ("day", pa.timestamp("us")), ("flag", pa.string()), ("code", pa.string())]
    )


def test_lines_behind_the_first_block_count_where_all_are_asked_for(tmp_path: Path) -> None:
    many = [f'{{"id": {at}, "pad": "{"x" * 1000}"}}' for at in range(9000)]
    put_text(tmp_path / "long.jsonl", *many, '{"id": 1.5, "new": true}')
    assert infer(tmp_path).schema == pa.schema([("id", pa.int64()), ("pad", pa.string())])
    assert infer(tmp_path, whole=True).schema == pa.schema(
        [("id", pa.float64()), ("pad", pa.string()), ("new", pa.bool_())]
    )


def test_a_conflict_names_both_files_whatever_the_order(tmp_path: Path) -> None:
    put(tmp_path / "b.parquet", id=["x"])
    put(tmp_path / "a.parquet", id=[1])
    with pytest.raises(IncompatibleData, match=r"column 'id' is int64 in 'a\.parquet' and string in 'b\.parquet'"):
        infer(tmp_path)
    assert infer(tmp_path, given={"id": pa.string()}).schema == pa.schema([("id", pa.string())])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"), st.sampled_from([pa.int8(), pa.int64(), pa.float32(), pa.string(), pa.null()])
        ).filter(bool),
        min_size=2,
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_files_come_to_be_makes_no_difference(
    tmp_path: Path, columns: list[dict[str, pa.DataType]], chance: random.Random
) -> None:
    outcomes = []
    for _ in range(2):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))  # a number that Hypothesis draws comes twice
        files = list(enumerate(columns))
        chance.shuffle(files)
        for at, kinds in files:
            put(folder / f"{at}.parquet", **{name: pa.nulls(1, kind) for name, kind in kinds.items()})
        try:
            outcomes.append(infer(folder).schema.to_string())
        except IncompatibleData as error:
            outcomes.append(error.what)
    assert outcomes[0] == outcomes[1]


def test_a_sample_is_always_the_same_and_told(tmp_path: Path) -> None:
    for at in range(40):
        put(tmp_path / f"{at:02}.parquet", id=[1])
    put(tmp_path / "99.parquet", id=[1], new=[2])
    seen: list[tuple[int, int]] = []
    found = infer(tmp_path, sample=4, on_progress=lambda done, of: seen.append((done, of)))
    assert found.schema.names == ["id", "new"]
    assert found.share == "sampled 4 of 41 files (10 %)"
    assert seen == [(4, 4)]
    names = [f"{at:06}" for at in range(100_000)]
    taken = spread(names, 1000)
    assert len(set(taken)) == 1000
    assert (taken[0], taken[-1]) == (names[0], names[-1])
    assert spread(names, None) == names
    with pytest.raises(ConfigError):
        spread(names, 0)


def test_files_of_other_tools_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", id=[1])
    for name in ("_SUCCESS", ".a.parquet.crc", "_delta_log/0.json", ".hidden/b.parquet", "c.parquet.tmp"):
        put_text(tmp_path / name, "nothing")
    put_text(tmp_path / "README.md", "notes")
    (tmp_path / "empty.parquet").touch()
    found = infer(tmp_path)
    assert (found.files, found.schema.names) == (1, ["id"])
    assert found.left_out == {
        "README.md": "its name tells no format",
        "empty.parquet": "it is empty",
        "_delta_log": "it is of a table, and says which of the other files count: all are looked at",
    }


def test_a_text_of_which_not_all_was_read_is_told(tmp_path: Path) -> None:
    """It said that it had read the file, of which the types change later."""
    put_text(tmp_path / "a.csv", "id,t\n" + f"1,{'t' * 1_000_000}\n" * 9 + "x,t\n")
    found = infer(tmp_path)
    assert (found.share, str(found.schema.field("id").type)) == (
        "read 1 files, of 1 no more than 8 MiB of lines",
        "int64",
    )
    found = infer(tmp_path, whole=True)
    assert (found.share, str(found.schema.field("id").type)) == ("read 1 files", "string")


def test_a_compressed_text_of_which_all_was_read_is_not_told_as_cut(tmp_path: Path) -> None:
    """Each of them was, however small."""
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id\n1\n"))
    assert infer(tmp_path).share == "read 1 files"
    line = b"1" * 1023 + b"\n"
    for more, share in (b"", "read 2 files"), (b"1", "read 2 files, of 1 no more than 8 MiB of lines"):
        (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"id\n" + b"\n" * 1021 + line * 8191 + more, 1))
        assert infer(tmp_path).share == share


def test_the_last_line_counts_without_its_end(tmp_path: Path) -> None:
    """It was not looked at, and the file was told as read."""
    put_text(tmp_path / "a.json", '{"id": 1}\n{"id": 0.5}')
    assert infer(tmp_path).schema.field("id").type == pa.float64()


def test_several_formats_need_a_choice(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", id=[1])
    put_text(tmp_path / "b.jsonl", '{"id": 1}')
    with pytest.raises(ConfigError, match="1 of parquet, 1 of json"):
        infer(tmp_path)
    found = infer(tmp_path, options=LandingTableOptions(format=FileFormat.JSON))
    assert found.left_out == {"a.parquet": "it is named as a file of parquet"}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _forge_length(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-8] + (0x7FFFFFFF).to_bytes(4, "little") + data[-4:])


def _forge_footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[-8:-4], "little")
    data[-8 - length : -8] = os.urandom(length)
    path.write_bytes(data)


def _is_text(path: Path) -> None:
    path.write_text("id\n1\n")


def _twice(path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), path)


def _deep(path: Path) -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(80):
        kind = pa.list_(kind)
    pq.write_table(pa.table({"id": pa.nulls(1, kind)}), path)


@pytest.mark.parametrize("harm", [_cut, _forge_length, _forge_footer, _is_text, _twice, _deep])
def test_a_bad_file_is_named(tmp_path: Path, harm) -> None:  # type: ignore[no-untyped-def]
    put(tmp_path / "good.parquet", id=[1])
    put(tmp_path / "bad.parquet", id=[1])
    harm(tmp_path / "bad.parquet")
    with pytest.raises(IncompatibleData, match=r"1 of 2 files can't be read") as caught:
        infer(tmp_path)
    assert "bad.parquet: " in str(caught.value.why)


def test_links_are_left_out_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path / "in/a.parquet", id=[1])
    put(tmp_path / "secret/b.parquet", secret=[1])
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    (tmp_path / "in/out").symlink_to(tmp_path / "secret")
    (tmp_path / "in/out.parquet").symlink_to(tmp_path / "secret/b.parquet")
    os.mkfifo(tmp_path / "in/pipe.parquet")
    found = infer(tmp_path / "in")
    assert found.schema.names == ["id"]
    assert set(found.left_out) == {"loop", "out", "out.parquet", "pipe.parquet"}


def test_a_file_that_vanishes_is_told(tmp_path: Path) -> None:
    for at in range(64):
        put(tmp_path / f"{at:02}.parquet", id=[1])
    names = spread([f"{at:02}.parquet" for at in range(64)], None)

    class Vanishing(Folder):
        def opened(self, path: str):  # type: ignore[no-untyped-def]
            if path == names[40]:
                (tmp_path / path).unlink(missing_ok=True)
            return super().opened(path)

    found = infer_folder(Vanishing(str(tmp_path), "."))
    assert found.left_out == {"40.parquet": "it is gone since the folder was listed"}
    assert found.schema.names == ["id"]


def test_partitions_are_columns_of_what_all_their_values_are(tmp_path: Path) -> None:
    for day, hour, region in (("2026-01-01", "1", "eu%2Fwest"), ("2026-01-02", "02", "__HIVE_DEFAULT_PARTITION__")):
        put(tmp_path / f"day={day}/hour={hour}/region={region}/a.parquet", id=[1])
    found = infer(tmp_path, partitions=True)
    assert found.partitions == ("day", "hour", "region")
    assert found.schema == pa.schema(
        [("id", pa.int64()), ("day", pa.date32()), ("hour", pa.string()), ("region", pa.string())]
    )
    assert infer(tmp_path).schema == pa.schema([("id", pa.int64())])
    put(tmp_path / "day=2026-01-03/a.parquet", id=[1])
    with pytest.raises(IncompatibleData, match="name the columns"):
        infer(tmp_path, partitions=True)


def test_odd_names_and_folders_without_files(tmp_path: Path) -> None:
    for name in ("a b.parquet", "100%.parquet", "#1.parquet", "ü.parquet", "it's.parquet"):
        put(tmp_path / "odd" / name, id=[1])
    assert infer(tmp_path / "odd").files == 5
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError):
        infer(tmp_path / "empty")
    with pytest.raises(LaketierError):
        infer(tmp_path / "gone")


LONG = "k" * 9000


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a.csv": "1,ann\n2,bob\n"}, r"a\.csv: its first line has '1', a value and no name of a column"),
        ({"a.csv": "id,name\n1,x\n", "b.csv": "ann,berlin\nbob,paris\n"}, "have no column in common"),
        ({"a.csv": "id,name\n"}, r"none of 1 files tells columns, because a\.csv: it has no records"),
        ({"a.json": "\ufeff", "b.json": ""}, r"none of 1 files tells columns, because a\.json: it has no records; …"),
        ({"a.json": "{}\n{}\n"}, "the records of 'a.json' have no fields"),
        ({"a.json": '{"": 1}\n'}, r"because a\.json: column '' has no name\."),
        ({"a.json": '{"s": {"id": 1}}\n', "b.json": '{"s": {"ID": 1}}\n'}, "fields 'id' and 'ID' of column 's' differ"),
        (
            {"a.json": '{"%s": 1}\n' % ("k" * 9000), "b.json": '{"%s": ""}\n' % ("k" * 9000)},
            "column 'k{133} … k{50}' is",
        ),
        ({"a.json": '{"v": 1}\n\n{"v": "a"}\n'}, r"a\.json: its line 3: the field v has a value of the kind string"),
    ],
)
def test_what_gives_no_columns_is_told(tmp_path: Path, files: dict[str, str], says: str) -> None:
    """Where rows would be lost: a record that is taken for a header, and records without a field."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for sample in (None, 1000):
        with pytest.raises(IncompatibleData, match=says) as error:
            infer(tmp_path, sample=sample)
        assert len(str(error.value)) < 1500


def test_a_sample_that_tells_no_columns_is_told_as_one(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("id,name\n")
    with pytest.raises(IncompatibleData, match=r"none of 2 files, a sample of 3, tells columns"):
        infer(tmp_path, sample=2)


def test_a_compressed_file_is_one_by_its_name_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "A.JSON.GZ").write_bytes(gzip.compress(b'{"id": 1}\n'))
    assert infer(tmp_path).schema == pa.schema([("id", pa.int64())])


def test_types_that_are_chosen_take_lines_that_no_type_was_found_for(tmp_path: Path) -> None:
    put_text(tmp_path / "a.json", '{"v": 1.5}', '{"v": 9007199254740993}')
    with pytest.raises(IncompatibleData, match=r"its line 2: .*declare it as decimal128"):
        infer(tmp_path)
    wide = pa.decimal128(30, 4)
    assert infer(tmp_path, given={"v": wide}).schema == pa.schema([("v", wide)])
