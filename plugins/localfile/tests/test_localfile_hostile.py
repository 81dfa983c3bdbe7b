"""Documents that somebody else wrote, and links that somebody else put there: nothing leaves the table's folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import FailpointError, failpoints
from laketier.kit.manifests import Manifest, ManifestMaintenance, files_at
from laketier.kit.manifests.document import encode
from laketier.spi import CorruptTable, Leaf, Op, OutsideTable, StagedFileLost, TablePath, Token, WriteMode
from laketier.tiering import TieringRound
from laketier_conformance.hostile import FIXED, PIECES
from laketier_conformance.outside import everything, touched
from laketier_localfile.layout import LAYOUT
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.table import LocalFileTable

HOSTILE = ("/laketier-nowhere/x", "../canary", "../other/part-0.parquet", "a/../../canary",
           "_laketier_manifests/table.json", "__superseded/part-0-a-0.parquet",
           "k=1/../part-0.parquet", "/laketier-nowhere/part-0.parquet",
           "part-0.parquet\x00")  # fmt: skip


def forge(table: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """The next manifest of the table, with a right checksum, as anybody can write one who may write into its folder."""
    log = table.log
    head, _ = log.head()
    body = json.loads(head.encode())["body"]
    body |= {"number": head.number + 1, "previous": head.sha256, "added": [], "kind": "upsert", "version": 2}
    body |= {"metadata": None, "metadata_at": head.metadata_at, "removed": []}
    change(body)
    log.path(head.number + 1).write_bytes(encode(body))


@pytest.mark.parametrize(
    "claim",
    [
        {"partition": ()},
        {"partition": (("region", "eu"), ("id", "7"))},
        {"partition": (("id", "x"),)},
        {"stats": "{"},
        {"stats": "[]"},
        {"stats": '{"id": ["x", "x", 0]}'},
        {"stats": '{"id": ["1", "1", 9]}'},
        {"stats": '{"nobody": ["1", "1", 0]}'},
        {"stats": '{"id": [[], "1", 0]}'},
        {"footer": "another"},
        {"footer": None, "stats": None},
    ],
    ids=str,
)
def test_what_a_forged_result_says_of_a_file_is_not_published(make_table: Any, claim: dict[str, Any]) -> None:
    """A manifest keeps it for ever, and scans that filter fail by it, or miss rows."""
    table = make_table(partition_by=("id",) if claim.get("partition") == (("id", "x"),) else ("region",))
    staged = table.stage([{"id": 7, "region": "eu"}])
    (file,) = staged.files
    payload = {key: value for key in file.payload if (value := claim.get(key, file.payload[key])) is not None}
    forged = replace(file, payload=payload, partition=claim.get("partition", file.partition))
    committer = table.committer()
    with pytest.raises(StagedFileLost, match="not the one"):
        committer.publish(committer.open(), [replace(staged, files=(forged,))], None)
    assert table.read_ids() == []
    committer.publish(committer.open(), [staged], None)
    assert table.read_ids() == [7]


@pytest.fixture
def around(table: Any, tmp_path: Path) -> Callable[[], dict[str, object]]:
    """A table, one beside it, and a file of somebody else's beside them; and what tells whether they were touched."""
    table.round(0)
    other = type(table)(table.warehouse, path=TablePath("db", "other"))
    other.create()
    other.round(0)
    (table.location.parent / "canary").write_text("theirs")
    (tmp_path / "canary").write_text("theirs")
    return lambda: {
        path: status
        for path, status in everything(tmp_path).items()
        if not path.startswith(str(table.location)) and path != str(table.location.parent)
    }


@pytest.mark.parametrize("where", ["removed", "added"])
@pytest.mark.parametrize("path", [*HOSTILE, "CANARY", "OTHER"])
def test_a_forged_manifest_touches_nothing(table: Any, around: Any, where: str, path: str) -> None:
    """Neither by a listing of orphans nor in the next round. `removed` was once moved, and `added` overwritten."""
    live = next((table.warehouse / "db" / "other").glob("part-*.parquet"))
    path = {"CANARY": str(table.location.parent / "canary"), "OTHER": f"../other/{live.name}"}.get(path, path)
    entry = {"path": path, "rows": 1, "bytes": 6, "footer": "f", "schema": 0, "partition": [], "bucket": None}
    forge(table, lambda body: body.update({where: [path] if where == "removed" else [entry | {"stats": {}}]}))
    before = around()
    for attempt in (
        lambda: ManifestMaintenance(LocalFileTable(table.location)).orphans(2**62),
        lambda: LocalFileTable(table.location).open(),
        lambda: table.round(1),
        table.read_ids,
    ):
        with pytest.raises(CorruptTable, match="is not the path of") as told:
            attempt()
        assert where in str(told.value)
        assert table.log.path(2).name in str(told.value.where), "the document is named"
    assert touched(before, around()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        *(({"stats": each}, "does not match its place") for each in (None, 5, [], {"id": 5}, {"id": ["1", "2"]})),
        *(({"stats": {"id": each}}, "does not match") for each in ([1, "2", 0], ["1", [], 0], ["1", "2", "0"])),
        *(({"stats": {"id": ["1", "2", each]}}, "does not match its place") for each in (-1, 1.5, True, None)),
        *(({"footer": each}, "does not match its place") for each in (None, 5, [])),
        *(({"stats": {"id": each}}, "no value of its columns") for each in (["x", "2", 0], ["1", "1.5", 0])),
        ({"partition": [["id", "x"]]}, "no value of its columns"),
        ({"partition": [["id", 7]]}, "does not match its place"),
    ],
    ids=str,
)
def test_what_a_forged_manifest_says_of_values_is_told_as_damage(
    make_table: Any, change: dict[str, Any], told: str
) -> None:
    """Where a filter asks for it, at the latest: it might pass over the file, and rows with it."""
    table = make_table(partition_by=("id",) if "partition" in change else ())
    table.create()
    TieringRound(table.factory, token=Token("p", "run", 0)).commit([table.stage([{"id": 7}])])
    (entry,) = table.log.head()[0].added
    plain = entry.to_plain()
    forge(table, lambda body: body.update(added=[plain | change], removed=[plain["path"]]))
    with pytest.raises(CorruptTable, match=told):
        table.scan(filters=(Leaf("id", Op.EQ, 1),))


def test_a_forged_rollup_is_passed_over(make_table: Any, caplog: pytest.LogCaptureFixture) -> None:
    table = make_table(options=LocalFileOptions(manifests_per_rollup=2))
    table.round(0)
    expected = files_at(table.log, 1)
    (rollup,) = (table.log.folder / "rollups").iterdir()
    body = json.loads(rollup.read_bytes())["body"]
    body["files"][0]["path"] = "../../canary"
    rollup.write_bytes(encode(body))
    assert files_at(table.log, 1) == expected
    assert "'../../canary' is not the path" in caplog.text


@pytest.mark.parametrize(
    "change",
    [{"table_uuid": "../../other"}, {"table_uuid": "/laketier-nowhere"}, {"table_uuid": ".."}, {"table_uuid": 7},
     {"manifests_per_rollup": 1}, {"manifests_per_rollup": "2"}, {"manifests_per_rollup": -4}],
)  # fmt: skip
def test_a_forged_table_file_is_refused(table: Any, around: Any, change: dict[str, Any]) -> None:
    path = table.location / "_laketier_manifests" / "table.json"
    path.write_bytes(encode(json.loads(path.read_bytes())["body"] | change))
    before = around()
    for attempt in (lambda: LocalFileTable(table.location).manifests(), lambda: table.factory):
        with pytest.raises(CorruptTable, match=r"table\.json"):
            attempt()
    assert touched(before, around()) == []


@pytest.mark.parametrize("number", ["1", 1.5, -1, 2**64, True, None])
@pytest.mark.parametrize("field", ["number", "metadata_at", "at"])
def test_a_number_in_a_manifest_is_one(table: Any, field: str, number: object) -> None:
    """It becomes a part of a file's name."""
    table.round(0)
    forge(table, lambda body: body.update({field: number}))
    with pytest.raises(CorruptTable):
        table.read_ids()


@pytest.mark.parametrize("name", ["_laketier_manifests", "__in_progress", "__superseded"])
def test_no_folder_of_a_table_is_another_s(table: Any, around: Any, name: str) -> None:
    theirs = table.warehouse / "db" / "other" / name
    theirs.mkdir(exist_ok=True)
    own = table.location / name
    if own.exists():
        own.rename(table.location / "_aside")
    own.symlink_to(theirs)
    before = around()
    with pytest.raises(OutsideTable, match="symbolic link"):
        table.round(1, mode=WriteMode.OVERWRITE)
    assert touched(before, around()) == []


def test_a_partition_s_folder_is_no_link(make_table: Any, tmp_path: Path) -> None:
    table = make_table(partition_by=("region",))
    (tmp_path / "theirs").mkdir()
    (table.location / "region=r1").symlink_to(tmp_path / "theirs")
    with pytest.raises(OutsideTable, match="region=r1"):
        table.round(0)
    assert list((tmp_path / "theirs").iterdir()) == []
    assert table.info.snapshot_id == 0, "it is refused before it is published"


def test_a_listing_finishes_no_commit(table: Any) -> None:
    """A crashed commit has files to be moved. Whoever only lists leaves that to the next round."""
    table.round(0)
    staged, committer = table.stage(table.ids(1)), table.committer()
    state = committer.open()
    with failpoints.observed(_fail), pytest.raises(FailpointError):
        committer.publish(state, [staged], None)
    before = everything(table.location)
    found = ManifestMaintenance(LocalFileTable(table.location)).orphans(2**62)
    assert touched(before, everything(table.location)) == []
    assert staged.files[0].path not in {file.path for file in found}, "it is published"
    assert table.read_ids() == [0, 1, 2, 3, 1000, 1001, 1002, 1003]


def _fail(name: str) -> None:
    if name == "publish.after_manifest_before_renames":
        raise FailpointError(name)


def test_a_table_that_is_a_link_is_not_dropped(table: Any, tmp_path: Path) -> None:
    table.round(0)
    (tmp_path / "moved").mkdir()
    shutil.move(table.location, tmp_path / "moved" / "events")
    table.location.symlink_to(tmp_path / "moved" / "events")
    assert table.read_ids() == [0, 1, 2, 3], "the folder itself may be reached through a link"
    with pytest.raises(OutsideTable, match="symbolic link"):
        table.storage.catalog().drop_table(table.path)
    assert table.read_ids() == [0, 1, 2, 3]


@pytest.mark.parametrize("to", ["nothing", "a folder"])
def test_a_link_in_the_place_of_the_table_s_document_is_not_followed(table: Any, tmp_path: Path, to: str) -> None:
    """To nothing, it is no table that is not there yet, which a round would make."""
    (tmp_path / "a folder").mkdir()
    descriptor = table.info.descriptor
    document = table.location / LAYOUT.table_file
    document.unlink()
    document.symlink_to(tmp_path / to)
    with pytest.raises(OutsideTable, match="symbolic link"):
        table.storage.catalog().load_table(table.path)
    with pytest.raises(OutsideTable, match="symbolic link"):
        table.storage.catalog().create_table(table.path, descriptor)
    assert not (tmp_path / "nothing").exists()


names = st.one_of(st.sampled_from(PIECES), st.text(st.sampled_from("part-0.quet=_/k"), max_size=12))


@given(st.one_of(st.sampled_from(FIXED), st.lists(names, min_size=1, max_size=4).map("/".join)))
def test_what_a_manifest_may_name_lies_where_data_files_lie(path: str) -> None:
    try:
        LAYOUT.data_path(path, where="x")
    except OutsideTable:
        manifest = Manifest(
            table_uuid="u", number=1, previous="", at=0, commit_id="", kind="upsert", metadata_at=0, removed=(path,)
        )
        try:
            document = manifest.encode()
        except UnicodeEncodeError:
            return
        with pytest.raises(CorruptTable):
            Manifest.decode(document, Path("m"), LAYOUT)
        return
    root = Path("/lake/db/t")
    *folders, name = (root / path).relative_to(root).parts
    assert not [part for part in path.split("/") if part in ("", ".", "..")]
    assert name.startswith("part-")
    assert all("=" in folder and folder[0] not in "_." for folder in folders)
