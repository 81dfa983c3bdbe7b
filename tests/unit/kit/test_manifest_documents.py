"""The documents of a table of files and manifests: what they keep, and what is told of one that another program wrote,
with a checksum that is right."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from laketier import spi
from laketier.kit.manifests.document import decode, digest_of, encode, whole
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Commit, Manifest
from laketier.kit.manifests.rollup import Block
from text_lake import PATH, Lake, OtherTable, TextTable, details, following, put

NO_TEXTS = [None, 5, True, [], {}, ["append"]]
COUNTS = [None, "1", 1.5, True, -1, 2**63, [], {}]
MISSING = object()


def body_of(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_bytes())["body"]
    return body


def sealed(text: bytes) -> bytes:
    """A document of any text."""
    return b'{"sha256":"' + hashlib.sha256(text).hexdigest().encode() + b'","body":' + text + b"}\n"


def changed(body: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    return {key: each for key, each in body.items() if key != name} | ({} if value is MISSING else {name: value})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.round(0, 1, 2)
    return lake


@pytest.fixture
def newest(lake: Lake) -> Path:
    """Its newest manifest, which nothing else vouches for."""
    path = lake.table.manifests().path(1)
    (path.parent / "head.json").unlink()
    return path


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, [*COUNTS, MISSING]) for name in ("number", "at", "metadata_at")),
        ("number", [0, 2]),
        ("table_uuid", ["0" * 32, MISSING]),
        ("added", [5, [5], ["path"], None, MISSING]),
        ("watermarks", [5, "text", [1], [], {"p": 7}, {"p": None}, MISSING]),
        ("removed", [5, [5], ["../x"], ["_text/table.json"], ["/etc/passwd"]]),
        ("metadata", [5, "text", [], {}, MISSING]),
        ("folded", [5, [5], ["x.text"], {"a": 1}]),
        ("version", [0, 9, "1", None, MISSING]),
        *((name, [*NO_TEXTS, MISSING]) for name in ("previous", "commit_id", "kind")),
        ("previous", ["x", "0" * 63]),
    ],
)
def test_a_manifest_of_another_program(lake: Lake, newest: Path, name: str, values: list[object]) -> None:
    body = body_of(newest)
    for value in values:
        newest.write_bytes(encode(changed(body, name, value)))
        with pytest.raises(spi.CorruptTable, match=newest.name):
            lake.table.open()
        with pytest.raises(spi.CorruptTable, match=newest.name):
            lake.read()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, [*COUNTS, MISSING]) for name in ("rows", "bytes", "schema")),
        ("path", [5, None, "../1.text", "/x", "notes.txt", "_text/table.json", MISSING]),
        ("partition", [5, [5], ["a"], [["a"]], [["a", "b", "c"]], [["a", 5]], [["a", ["b"]]], [[5, "a"]], MISSING]),
        ("bucket", [each for each in [*COUNTS, MISSING] if each is not None]),
        ("level", [count for count in COUNTS if count is not MISSING]),
        ("lines", ["x", None, MISSING]),
    ],
)
def test_an_entry_of_another_program(lake: Lake, newest: Path, name: str, values: list[object]) -> None:
    body = body_of(newest)
    for value in values:
        newest.write_bytes(encode(body | {"added": [changed(body["added"][0], name, value)]}))
        with pytest.raises(spi.CorruptTable, match=newest.name):
            lake.table.open()


@pytest.mark.parametrize(
    "text", [b"", b"5", b"null", b"[]", b'"text"', b"{", b"\xff", b"[" * 100_000, b'{"version":1}']
)
def test_a_document_that_is_none(lake: Lake, newest: Path, text: bytes) -> None:
    newest.write_bytes(sealed(text))
    with pytest.raises(spi.CorruptTable, match=newest.name):
        lake.table.open()


def test_each_bit_is_checked(lake: Lake, newest: Path) -> None:
    document = newest.read_bytes()
    for at in (*range(0, len(document), 37), len(document) - 1):
        newest.write_bytes(document[:at] + bytes([document[at] ^ 1]) + document[at + 1 :])
        with pytest.raises(spi.CorruptTable, match=f"{newest.name}: the file is damaged"):
            lake.table.open()


@pytest.mark.parametrize("damage", [b"\x00", b"\xff\xff\xff\xff\x10\x00\x00\x00"])
def test_a_schema_that_is_none(lake: Lake, damage: bytes) -> None:
    first = lake.table.manifests().path(0)
    body = body_of(first)
    body["metadata"]["arrow_schema"] = base64.b64encode(damage).decode()
    first.write_bytes(encode(body))
    with pytest.raises(spi.CorruptTable, match=first.name):
        lake.table.open()


@pytest.mark.parametrize("value", [None, 7, ["x"], [], "text", {"owner": 7}, {"owner": None}])
def test_properties_that_are_none(lake: Lake, value: object) -> None:
    first = lake.table.manifests().path(0)
    body = body_of(first)
    body["metadata"]["properties"] = value
    first.write_bytes(encode(body))
    for look in (lake.table.open, lake.read):
        with pytest.raises(spi.CorruptTable, match=first.name):
            look()


def test_a_description_that_is_not_where_it_should_be(lake: Lake, newest: Path) -> None:
    newest.write_bytes(encode(body_of(newest) | {"metadata_at": 1}))
    with pytest.raises(spi.CorruptTable, match=f"{newest.name}: the manifest holds no description"):
        lake.table.open()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("manifests_per_rollup", [*COUNTS, 0, 1, MISSING]),
        ("table_uuid", ["", "x" * 32, "0" * 31, "../" + "0" * 32, 5, None, MISSING]),
        ("format", [MISSING]),
        ("version", [0, 9, MISSING]),
    ],
)
def test_a_table_file_of_another_program(lake: Lake, name: str, values: list[object]) -> None:
    file = lake.table.location / "_text" / "table.json"
    body = body_of(file)
    for value in values:
        file.write_bytes(encode(changed(body, name, value)))
        for look in (lake.table.open, lambda: lake.catalog.load_table(PATH), lake.read):
            with pytest.raises(spi.CorruptTable, match=r"table\.json"):
                look()


def test_rollups_of_two_are_allowed(lake: Lake) -> None:
    assert lake.table.manifests().manifests_per_rollup == 2


@pytest.mark.parametrize(
    "body", [{}, {"number": "1", "sha256": "x"}, {"number": 1.0, "sha256": "x"}, {"number": 1}, {"number": -1}, 5]
)
def test_a_head_file_of_another_program_is_no_head_file(lake: Lake, body: Any) -> None:
    head = lake.table.manifests().folder / "head.json"
    body = {"version": 1, **body} if isinstance(body, dict) else body
    head.write_bytes(sealed(json.dumps(body).encode()))
    assert lake.read() == [1, 2]
    assert lake.table.open().head.number == 1
    assert body_of(head)["number"] == 1, "it was written again"


def test_a_head_file_is_a_document(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.folder / "head.json"
    assert decode(head.read_bytes(), head, lambda body, _: body) == {
        "version": 1,
        "number": 1,
        "sha256": manifests.read(1).sha256,
    }


@pytest.mark.parametrize("value", [-1, 2**63, 3**63])
def test_what_is_no_count(value: int) -> None:
    with pytest.raises(ValueError, match="is no count"):
        whole(value)
    assert whole(2**63 - 1) == 2**63 - 1
    assert whole(0) == 0
    with pytest.raises(TypeError, match="is no whole number"):
        whole(True)


def test_a_document_is_canonical() -> None:
    """So that the same content has the same digest, and people can read it."""
    document = encode({"b": "é", "a": [1, 2]})
    assert document.endswith('"body":{"a":[1,2],"b":"é"}}\n'.encode())
    assert digest_of(document) == json.loads(document)["sha256"]


DESCRIPTOR = spi.TableDescriptor(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32())]),
    partition_by=(spi.PartitionField("day"),),
    buckets=spi.BucketSpec(4, ("id",)),
    primary_key=("id",),
    properties=MappingProxyType({"owner": "me"}),
    comment="told",
)
FILE = FileEntry("0" * 32 + ".text", 2, 4, 0, (("day", None),), 3, {"lines": 2})


def _manifest(**changes: Any) -> Manifest:
    first = Manifest(
        table_uuid="0" * 32,
        number=0,
        previous="",
        at=5,
        commit_id="c",
        kind="create",
        metadata_at=0,
        metadata=DESCRIPTOR,
    )
    return replace(first, **changes)


def _read_back(manifest: Manifest) -> Manifest:
    return Manifest.decode(manifest.encode(), Path("m"), TextTable.layout)


def test_a_manifest_keeps_what_it_was_given() -> None:
    given = _manifest(
        added=(FILE,), removed=("1" * 32 + ".text",), watermarks={"p": "x"}, kind="upsert", previous="1" * 64
    )
    found = _read_back(given)
    assert replace(found, sha256="") == given
    assert found.sha256 == digest_of(given.encode())
    assert found.metadata == DESCRIPTOR
    assert found.metadata is not None
    assert (found.metadata.properties, found.metadata.comment) == ({"owner": "me"}, "told")
    assert found.commit == Commit(0, 5, "c", "upsert")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("partition_by", [5, [7], [["day"]]]),
        ("buckets", [5, [], {}, {"count": 2.0, "keys": ["id"], "function": "fluss"}]),
        ("buckets", [{"count": 2, "keys": keys, "function": "fluss"} for keys in (5, [], [7], "id")]),
        ("buckets", [{"count": count, "keys": ["id"], "function": "fluss"} for count in (True, "2", 0, -1, None)]),
        ("buckets", [{"count": 2, "keys": ["id"], "function": name} for name in (7, None, ["fluss"])]),
        ("primary_key", [5, None, [7], [["id"]], "id"]),
        ("properties", [5, ["x"], {"x": 7}]),
        ("comment", [7, ["x"], {}]),
    ],
)
def test_a_description_of_another_program_is_refused(name: str, values: list[object]) -> None:
    """Who computes a bucket, or compares a name, would end in an error of Python's."""
    body = json.loads(_manifest().encode())["body"]
    for value in values:
        forged = encode({**body, "metadata": {**body["metadata"], name: value}})
        with pytest.raises(spi.CorruptTable, match="content does not match its place"):
            Manifest.decode(forged, Path("m"), TextTable.layout)


def test_what_an_entry_keeps_goes_through_the_formats_check() -> None:
    assert _read_back(_manifest(added=(FILE,))).added[0].details == details({"lines": 2})


def test_columns_are_told_to_people() -> None:
    body = json.loads(_manifest().encode())["body"]
    assert body["metadata"]["columns"] == [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "day", "type": "date32[day]", "nullable": True},
    ]


def test_what_older_readers_would_read_wrongly_has_a_version_of_its_own() -> None:
    keyless = replace(DESCRIPTOR, primary_key=())

    def version(manifest: Manifest) -> int:
        found: int = json.loads(manifest.encode())["body"]["version"]
        return found

    assert version(_manifest()) == 2
    assert version(_manifest(metadata=keyless)) == 1
    assert version(_manifest(metadata=None)) == 1
    assert version(_manifest(metadata=None, removed=("1" * 32 + ".text",))) == 2
    assert version(_manifest(metadata=keyless, removed=("1" * 32 + ".text",))) == 2


def test_a_transform_comes_back_in_a_manifest_that_older_versions_refuse() -> None:
    """They would take the value of a partition for that of a column."""
    transformed = replace(DESCRIPTOR, partition_by=(spi.PartitionField.parse("bucket(4, id)"),))
    document = _manifest(metadata=transformed).encode()
    manifest = Manifest.decode(document, Path("m"), TextTable.layout)
    assert manifest.metadata is not None
    assert manifest.metadata.partition_by == transformed.partition_by
    versions = [json.loads(each)["body"]["version"] for each in (document, _manifest().encode())]
    assert versions[0] > versions[1]


@pytest.mark.parametrize("removed", [(), ("1" * 32 + ".text", "2" * 32 + ".text")])
@pytest.mark.parametrize("resets", [True, False])
def test_a_rollup_keeps_what_it_was_given(removed: tuple[str, ...], resets: bool) -> None:
    first = "overwrite" if resets else "create"
    blocks = [
        Block.of(_manifest(number=4, previous="a" * 64, added=(FILE,), kind=first, sha256="b")),
        Block.of(
            _manifest(number=5, previous="b" * 64, at=6, commit_id="d", removed=removed, kind="upsert", sha256="c")
        ),
    ]
    joined = Block.join(blocks)
    assert (joined.first, joined.last, joined.previous, joined.sha256) == (4, 5, "a" * 64, "c")
    assert (joined.resets, joined.files, joined.removed) == (resets, (FILE,), removed)
    assert [(commit.number, commit.at, commit.commit_id, commit.kind) for commit in joined.commits] == [
        (4, 5, "c", first),
        (5, 6, "d", "upsert"),
    ]
    document = joined.encode()
    body = json.loads(document)["body"]
    assert body["version"] == (2 if removed else 1)
    assert ("removed" in body) == bool(removed)
    assert body["resets"] is resets  # of which a laketier from before makes up its mind
    assert decode(document, Path("r"), lambda body, _: Block.from_body(body, TextTable.layout)) == joined


def test_what_a_rollup_both_adds_and_removes_is_in_neither() -> None:
    added = Block.of(_manifest(number=4, added=(FILE,)))
    removed = Block.of(_manifest(number=5, removed=(FILE.path, "1" * 32 + ".text")))
    joined = Block.join([added, removed])
    assert (joined.files, joined.removed) == ((), ("1" * 32 + ".text",))
    reset = Block.of(_manifest(number=6, kind="overwrite", added=(replace(FILE, path="3" * 32 + ".text"),)))
    assert [entry.path for entry in Block.join([added, removed, reset]).files] == ["3" * 32 + ".text"]
    assert Block.join([added, removed, reset]).removed == ()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, [*COUNTS, MISSING]) for name in ("first", "last")),
        *((name, [*NO_TEXTS, MISSING]) for name in ("previous", "sha256")),
        ("files", [None, 5, [5], [{}], MISSING]),
        ("removed", [5, [5], ["../x"]]),
        ("commits", [None, 5, [5], [[]], [[0, 1, "c"]], [["0", 1, "c", "append"]], [[0, 1, 2, "append"]], MISSING]),
    ],
)
def test_a_rollup_of_another_program_is_passed_over(
    lake: Lake, name: str, values: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    manifests = lake.table.manifests()
    [rollup] = (manifests.folder / "rollups").iterdir()
    whole_one = body_of(rollup)
    for value in values:
        caplog.clear()
        rollup.write_bytes(encode(changed(whole_one, name, value)))
        assert lake.read() == [1, 2]
        assert not lake.table.open().landed("nothing")
        assert "instead of a damaged rollup" in caplog.text


def test_a_link_is_no_document(lake: Lake, tmp_path: Path) -> None:
    other = Lake(tmp_path / "other")
    file = lake.table.location / "_text" / "table.json"
    file.unlink()
    file.symlink_to(other.table.location / "_text" / "table.json")
    with pytest.raises(spi.OutsideTable):
        lake.table.manifests()
    file.unlink()
    file.write_bytes((other.table.location / "_text" / "table.json").read_bytes())
    own = other.table.manifests().folder
    (lake.table.location / "_text" / own.name).symlink_to(own)
    with pytest.raises(spi.OutsideTable):
        lake.table.manifests()


def test_a_table_file_in_a_file_is_none(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("theirs")
    with pytest.raises(spi.TableNotFound):
        TextTable(tmp_path / "file").manifests()
    with pytest.raises(spi.IncompatibleTable, match="has the format 'text'"):
        ManifestLog.open(lake.table.location, OtherTable.layout)


def test_a_table_without_manifests(lake: Lake) -> None:
    manifests = lake.table.manifests()
    for path in manifests.folder.glob("*.json"):
        path.unlink()
    with pytest.raises(spi.CorruptTable, match="the table has no manifest"):
        manifests.head()
    os.rename(manifests.folder, manifests.folder.with_name("away"))
    with pytest.raises(spi.CorruptTable, match="the table has no manifest"):
        manifests.head()


def test_a_manifest_that_is_gone(lake: Lake) -> None:
    lake.round(1, 3)
    manifests = lake.table.manifests()
    for rollup in (manifests.folder / "rollups").iterdir():
        rollup.unlink()
    manifests.path(1).unlink()
    with pytest.raises(spi.CorruptTable, match="a manifest is missing"):
        lake.read()


def test_an_older_manifest_that_is_gone_is_damage(lake: Lake) -> None:
    """Not a snapshot that never was."""
    manifests = lake.table.manifests()
    put(manifests, following(manifests.head()[0]))
    head, _ = manifests.head()
    manifests.path(0).unlink()
    with pytest.raises(spi.CorruptTable, match="a manifest is missing"):
        manifests.at(0, head)


def test_whatever_building_trips_over_is_damage() -> None:
    """Arrow, for one, has errors that are none of Python's usual ones."""

    def build(*_: Any) -> None:
        raise pa.ArrowNotImplementedError("a type of the future")

    with pytest.raises(spi.CorruptTable, match="a type of the future"):
        decode(encode({"version": 1}), "m.json", build)


def test_a_manifest_that_was_replaced_later(lake: Lake) -> None:
    """What follows it has its digest."""
    lake.round(1, 3)
    manifests = lake.table.manifests()
    for rollup in (manifests.folder / "rollups").iterdir():
        rollup.unlink()
    manifests.path(1).write_bytes(encode(body_of(manifests.path(1)) | {"commit_id": "other"}))
    with pytest.raises(spi.CorruptTable, match="manifest 1 is not the one that manifest 2 follows"):
        lake.read()


@pytest.mark.parametrize("error", [MemoryError("no room"), spi.CorruptTable("told by itself")])
def test_what_is_no_damage_of_this_document_is_told_as_it_is(error: Exception) -> None:
    def build(*_: Any) -> None:
        raise error

    with pytest.raises(type(error)) as told:
        decode(encode({"version": 1}), "m.json", build)
    assert told.value is error


def test_a_folder_of_manifests_elsewhere_is_told_as_that(lake: Lake) -> None:
    file = lake.table.location / "_text" / "table.json"
    file.write_bytes(encode(body_of(file) | {"table_uuid": "../" + "0" * 32}))
    with pytest.raises(spi.CorruptTable, match=r"(?s)is no name of a folder.*Nothing outside of the table was touched"):
        lake.table.open()
