"""Fragments that no writer of laketier made, and links in a dataset's folders."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from laketier.spi import CommitterInitContext, IncompatibleTable, OutsideTable, Refused, ScanRequest, TableError
from laketier_conformance.outside import everything, touched
from laketier_lance.writer import FRAGMENT

READER_FLAGS, WRITER_FLAGS = b"\x48", b"\x50"
"""The tags of two numbers in Lance's manifest: features that a reader, and a writer, has to know."""
_FLAG = b"\x80\x80\x80\x80\x04"
"""2 to the power of 30, which no version of Lance has given a meaning yet."""


def newer(location: str, *tags: bytes) -> None:
    """Let the newest manifest ask for a feature of a version of Lance to come."""
    path = min(Path(location, "_versions").glob("*.manifest"))
    content = path.read_bytes()
    body, footer = content[:-16], content[-16:]
    at = int.from_bytes(footer[:8], "little")
    told = body[at + 4 :] + b"".join(tag + _FLAG for tag in tags)
    path.write_bytes(body[:at] + len(told).to_bytes(4, "little") + told + footer)


def forged(staged, **change):
    file = staged.files[0]
    fragment = json.loads(file.payload[FRAGMENT])
    for key, value in change.items():
        (fragment["files"][0] if key in fragment["files"][0] else fragment)[key] = value
    return replace(staged, files=(replace(file, payload={FRAGMENT: json.dumps(fragment)}),))


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../../other.lance/data/x.lance"},
        {"path": "/laketier-nowhere/x"},
        {"path": "another.lance"},
        {"base_id": 1},
        {"physical_rows": 10**9},
        {"file_size_bytes": 7},
        {"id": 5},
        {"deletion_file": {"read_version": 1, "id": 1, "file_type": "array", "num_deleted_rows": 1, "base_id": None}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_fragment_is_of_the_file_that_was_staged(table, change):
    """Lance takes whatever a fragment says: a file of another dataset, more rows than there are."""
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    committer = table.factory.create_committer(CommitterInitContext("c"))
    with pytest.raises((OutsideTable, TableError, ValueError)):
        committer.publish(committer.open(), [forged(staged, **change)], None)
    assert table.ids() == [1]
    assert table.open().version == 2


@pytest.mark.parametrize("name", ["data", "_versions", "_transactions"])
def test_no_folder_of_a_dataset_is_another_s(table, tmp_path, name):
    table.append(0, 1)
    other = tmp_path / "other.lance"
    lance.write_dataset(table.open().to_table(), other)
    own = Path(table.location, name)
    own.rename(own.with_name("aside"))
    own.symlink_to(other / name)
    before = everything(other)
    for attempt in (
        lambda: table.append(1, 2),
        lambda: table.storage.maintenance(table.info).orphans(2**53),
        lambda: table.stage(table.rows(3)),
    ):
        with pytest.raises(OutsideTable, match="symbolic link"):
            attempt()
    assert touched(before, everything(other)) == []


def test_what_a_link_leads_to_is_no_orphan(table, tmp_path):
    """Lance lists through links."""
    table.append(0, 1)
    staged = table.stage(table.rows(2)).files[0].path
    (tmp_path / "theirs.lance").write_text("theirs")
    Path(table.location, "data", "linked.lance").symlink_to(tmp_path / "theirs.lance")
    assert [file.path for file in table.storage.maintenance(table.info).orphans(2**53)] == [staged]


def test_an_old_result_is_neither_published_again_nor_discarded(table):
    """Attempt, file and fragment agree, and the rows are live: Lance lists them as often as it is told."""
    old = table.stage(table.rows(1))
    table.round(0).commit([old])
    committer = table.factory.create_committer(CommitterInitContext("c"))
    with pytest.raises(OutsideTable, match="already"):
        committer.publish(committer.open(), [old], None)
    other = table.stage(table.rows(2))
    committer.discard([old, other])
    assert table.ids() == [1]
    assert [f"data/{name}" for name in table.data_files()] == [file.path for file in old.files]


def test_a_result_that_a_tagged_version_needs_is_not_published_again(table):
    """Its own version was cleaned up, and the tag keeps its file."""
    old, late = (table.stage(table.rows(number)) for number in (1, 2))
    table.round(0).commit([old])
    table.round(1).commit([table.stage(table.rows(3))])
    table.open().tags.create("kept", table.open().version)
    table.open().delete("true")
    table.open().cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    committer = table.factory.create_committer(CommitterInitContext("c"))
    with pytest.raises(OutsideTable, match="was published before"):
        committer.publish(committer.open(), [old], None)
    committer.publish(committer.open(), [late], None)
    assert table.ids() == [2]


@pytest.mark.parametrize("branched", [False, True])
def test_a_result_that_an_older_version_needs_is_not_discarded(table, branched):
    old, other = (table.stage(table.rows(number)) for number in (1, 2))
    version = table.round(0).commit([old]).snapshot_id
    if branched:
        table.open().create_branch("kept", version)
    table.open().delete("true")
    if branched:
        table.open().cleanup_old_versions(timedelta(0))
    table.factory.create_committer(CommitterInitContext("c")).discard([old, other])
    then = table.open().checkout_version(("kept", None) if branched else version)
    assert then.to_table()["id"].to_pylist() == [1]
    assert [f"data/{name}" for name in table.data_files()] == [file.path for file in old.files]


def test_nothing_is_discarded_where_the_dataset_can_not_be_read(table, caplog):
    staged = table.stage(table.rows(1))
    committer = table.factory.create_committer(CommitterInitContext("c"))
    Path(table.location, "_versions").rename(Path(table.location, "aside"))
    committer.discard([staged])
    assert [f"data/{name}" for name in table.data_files()] == [file.path for file in staged.files]
    assert "orphan collection" in caplog.text


def test_a_dataset_of_a_newer_lance_is_not_called_damaged(table):
    """Whoever is told that a table is damaged restores an older copy over it."""
    table.append(0, 1)
    newer(table.open().uri, READER_FLAGS, WRITER_FLAGS)
    with pytest.raises(IncompatibleTable, match=r"newer version of Lance.*Upgrade pylance"):
        table.append(1, 2)


def test_a_dataset_that_only_a_newer_lance_may_write_to_is_refused_at_once(table):
    table.append(0, 1)
    newer(table.open().uri, WRITER_FLAGS)
    with pytest.raises(Refused, match=r"newer version of Lance.*Upgrade pylance"):
        table.append(1, 2)
    assert table.ids() == [1]


@pytest.mark.parametrize(
    ("was", "is_now"),
    [(b"int64", b"int6t"), (b"int64", b"\xff\xfe\xfd\xfc\xfb")],
    ids=["a type that nobody knows", "no text"],
)
def test_a_manifest_for_which_lance_panics_is_an_error(table, was, is_now):
    """A panic is no `Exception`: it would end a task, or a driver, with what Rust says."""
    table.append(0, 1)
    newest = min(Path(table.info.location, "_versions").glob("*.manifest"))
    content = newest.read_bytes()
    assert was in content
    newest.write_bytes(content.replace(was, is_now))
    looks = [
        lambda: table.append(1, 2),
        lambda: table.storage.catalog().load_table(table.path),
        lambda: table.storage.source(table.info.with_handle(None)).plan(ScanRequest()),
    ]
    for look in looks:
        with pytest.raises(TableError, match=r"Lance could not read the dataset|can't be read"):
            look()
