"""Tables of manifests with files that stay open across commits, and with small files that commits write as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from laketier import kit, spi
from laketier.kit.file_counts import FILE_COUNTS
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.document import encode
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.folding import FoldSettings
from laketier.kit.manifests.growth import GROWTH, Growth, growth_of, growth_text
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.maintenance import ManifestMaintenance
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.open_files import Finished, OpenFileDamaged
from laketier.kit.manifests.rollup import Block, files_at
from laketier.kit.manifests.table import ManifestState
from text_lake import PATH, Lake, TextTable, details

OPEN = Growth(rows=0, bytes=0, upto=4, head=0, digest="d", pipeline="p")
ENTRY = FileEntry("0" * 32 + ".text", 2, 4, 0, details={"lines": 2}, growth=OPEN)


class Growing(TextTable):
    """Its files may stay open. To finish one is to copy what was recorded."""

    layout: ClassVar = replace(
        TextTable.layout,
        details=lambda plain: details({name: value for name, value in plain.items() if name != GROWTH}),
    )
    folding: ClassVar = None
    broken: ClassVar[Exception | None] = None
    rows_lost: ClassVar[int] = 0

    def entry(self, state: ManifestState, file: spi.StagedFile) -> FileEntry:
        made = super().entry(state, replace(file, payload={"lines": file.payload["lines"]}))
        return replace(made, growth=growth_of(file))

    def finish_open(self, state: ManifestState, entry: FileEntry) -> spi.StagedFile:
        if self.broken is not None:
            raise self.broken
        return self._staged([(self.location / entry.path).read_bytes()[: entry.bytes]], entry.rows - self.rows_lost)

    def rewrite(self, state: ManifestState, files: Sequence[FileEntry]) -> Sequence[spi.StagedFile]:
        if self.broken is not None:
            raise self.broken
        data = [(self.location / entry.path).read_bytes() for entry in files]
        return [self._staged(data, sum(entry.rows for entry in files) - self.rows_lost)]

    def _staged(self, data: Sequence[bytes], rows: int) -> spi.StagedFile:
        path = self.location / f"{spi.new_attempt_id()}.text"
        path.write_bytes(b"\n".join(data))
        return spi.StagedFile(path.name, rows, path.stat().st_size, payload={"lines": str(rows)})


class Folding(Growing):
    folding: ClassVar = FoldSettings(2, 100)


class GrowingLake(Lake):
    """`grow` stages what a process that lives over epochs does: a file that goes on."""

    def __init__(self, warehouse: Path, table_type: type[TextTable] = Growing) -> None:
        super().__init__(warehouse, table_type)

    def grow(self, attempt: str, had: Sequence[int], *numbers: int) -> spi.WriteResult:
        path = self.table.location / f"{attempt}.text"
        before = "\n".join(map(str, had))
        path.write_text("\n".join(map(str, (*had, *numbers))))
        size = path.stat().st_size
        growth = Growth(rows=len(had), bytes=len(before), upto=size, head=0, digest="d")
        payload = {"lines": str(len(had) + len(numbers)), GROWTH: growth_text(growth)}
        file = spi.StagedFile(path.name, len(had) + len(numbers), size, payload=payload)
        return spi.WriteResult.of(self.info, attempt, (file,))

    def commit(
        self, epoch: int, *results: spi.WriteResult, pipeline: str = "p", mode: spi.WriteMode = spi.WriteMode.APPEND
    ) -> spi.LakeCommitResult:
        committer = self.create_committer(spi.CommitterInitContext(spi.new_attempt_id(), mode=mode))
        mark = spi.Watermark(spi.Token(pipeline, "run", epoch), committer.context.commit_id)
        return committer.publish(committer.open(), results, mark)

    @property
    def head(self) -> Manifest:
        return self.table.manifests().head()[0]


@pytest.fixture
def lake(tmp_path: Path) -> GrowingLake:
    return GrowingLake(tmp_path / "lake")


def _attempt() -> str:
    return spi.new_attempt_id()


def test_an_entry_keeps_what_it_says_of_its_growth() -> None:
    for entry in (ENTRY, replace(ENTRY, level=3, transformed=True), replace(ENTRY, growth=None, level=1)):
        assert FileEntry.from_plain(entry.to_plain(), Growing.layout) == entry
    assert set(replace(ENTRY, growth=None).to_plain()).isdisjoint({"level", "transformed", GROWTH})
    assert (ENTRY.arrived_rows, ENTRY.arrived_bytes, ENTRY.is_open, ENTRY.continues) == (2, 4, True, False)
    grown = replace(ENTRY, rows=5, bytes=9, growth=replace(OPEN, rows=2, bytes=4, upto=9, is_open=False))
    assert (grown.arrived_rows, grown.arrived_bytes, grown.is_open, grown.continues) == (3, 5, False, True)


@pytest.mark.parametrize(
    ("growth", "is_whole"),
    [({"rows": 2}, True), ({"rows": 3}, False), ({"upto": 4}, True), ({"upto": 5}, False), ({"head": 5}, False)],
)
def test_a_file_that_shrank_is_damage(growth: dict[str, int], is_whole: bool) -> None:
    plain = replace(ENTRY, growth=replace(OPEN, **growth)).to_plain()
    if is_whole:
        FileEntry.from_plain(plain, Growing.layout)
    else:
        with pytest.raises(ValueError, match=r"shrank|can't grow"):
            FileEntry.from_plain(plain, Growing.layout)


def _manifest(**changes: Any) -> Manifest:
    first = Manifest(
        table_uuid="0" * 32, number=3, previous="", at=5, commit_id="c", kind="append", metadata_at=0, metadata=None
    )
    return replace(first, **changes)


def _version(manifest: Manifest) -> int:
    found: int = json.loads(manifest.encode())["body"]["version"]
    return found


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({"earliest": 1}, 8),
        ({"earliest": 3}, 8),
        ({"open": (ENTRY,)}, 7),
        ({"added": (ENTRY,)}, 7),
        ({"added": (replace(ENTRY, growth=None, transformed=True),)}, 6),
        ({"removed": ("1" * 32 + ".text",), "folded": ("1" * 32 + ".text",)}, 3),
        ({"folding": {"files": 2}}, 1),
        ({"folding": 7}, 1),  # of another version: `Room.from_plain` passes over it
        ({"folding": {}}, 1),
    ],
)
def test_a_manifest_keeps_what_few_formats_ask_for(changes: dict[str, Any], version: int) -> None:
    given = _manifest(**changes)
    assert replace(Manifest.decode(given.encode(), "m", Growing.layout), sha256="") == given
    assert _version(given) == version


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"earliest": 4}, "snapshot 4 is not there yet"),
        ({"earliest": -1}, "is no count"),
        ({"folded": ["1" * 32 + ".text"]}, "folds files that it does not remove"),
        ({"open": [replace(ENTRY, growth=None).to_plain()]}, "calls files open that are not"),
        ({"open": [replace(ENTRY, growth=replace(OPEN, is_open=False)).to_plain()]}, "calls files open that are not"),
        ({"open": [ENTRY.to_plain()], "added": [ENTRY.to_plain()]}, "or that it changes"),
        ({"open": [ENTRY.to_plain()], "removed": [ENTRY.path]}, "or that it changes"),
        ({"open": [{**ENTRY.to_plain(), "path": "../x"}]}, "x"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_damage(change: dict[str, Any], told: str) -> None:
    body = json.loads(_manifest().encode())["body"]
    with pytest.raises(spi.CorruptTable, match=told):
        Manifest.decode(encode(body | change), "m", Growing.layout)


def test_what_goes_on_from_manifest_to_manifest() -> None:
    head = _manifest(
        added=(ENTRY,), earliest=2, origin="adopted", folding={"files": 2}, watermarks={"p": "x"}, sha256="s"
    )
    after = next_manifest(head, commit_id="d", kind="append")
    for name in ("table_uuid", "metadata_at", "folding", "watermarks", "origin", "earliest"):
        assert getattr(after, name) == getattr(head, name), name
    assert (after.open, after.previous, after.number, after.commit_id, after.kind, after.added, after.metadata) == (
        (ENTRY,),
        "s",
        4,
        "d",
        "append",
        (),
        None,
    )
    assert next_manifest(head, commit_id="d", kind="expire", earliest=3).earliest == 3


def test_files_that_are_open_as_of_a_manifest() -> None:
    other = replace(ENTRY, path="1" * 32 + ".text")
    assert _manifest(added=(ENTRY, replace(other, growth=None)), open=(other,)).open_files == (other, ENTRY)
    grown_by_none = replace(ENTRY, growth=replace(OPEN, rows=2, bytes=4))
    assert _manifest(added=(grown_by_none, other)).arrived == (other,)
    empty = replace(other, rows=0, growth=None)
    assert _manifest(added=(empty, other)).arrived == (other,), "nobody has to look for rows in a file without any"
    folded = replace(other, level=1, growth=None)
    assert _manifest(added=(ENTRY, folded), removed=("a", "b"), folded=("a",)).arrived == (ENTRY,)
    assert _manifest(added=(folded,)).arrived == (folded,)
    assert _manifest(added=(folded,), removed=("a", "b"), folded=("a",)).replaced == ("b",)
    assert _manifest(removed=("a", "b")).replaced == ("a", "b")


def test_a_file_grows_from_commit_to_commit(lake: GrowingLake) -> None:
    """Of two pipelines, each with a file of its own, and the rows of a commit are those that it brought."""
    ours, theirs = _attempt(), _attempt()
    first = lake.commit(0, lake.grow(ours, (), 1, 2))
    assert (first.rows, first.files) == (2, 1)
    lake.commit(0, lake.grow(theirs, (), 7), pipeline="q")
    second = lake.commit(1, lake.grow(ours, (1, 2), 3))
    assert (second.rows, second.files, second.bytes) == (1, 1, 2)
    assert lake.head.added[0].growth is not None
    assert lake.head.added[0].growth.pipeline == "", "it is the file's, and its first commit told whose"
    assert sorted(lake.read()) == [1, 2, 3, 7]
    assert {entry.path for entry in lake.head.open_files} == {f"{ours}.text", f"{theirs}.text"}
    assert [len(lake.changes.plan(number, number + 1).splits) for number in (1, 2, 3)] == [1, 1, 1]


def test_a_file_that_its_process_left_is_finished_by_the_next_commit_of_its_pipeline(lake: GrowingLake) -> None:
    ours, theirs = _attempt(), _attempt()
    lake.commit(0, lake.grow(ours, (), 1, 2))
    (lake.table.location / f"{ours}.text").write_text("1\n2\n3")
    lake.commit(0, lake.grow(theirs, (), 7), pipeline="q")
    assert [entry.path for entry in lake.head.open] == [f"{ours}.text"]
    result = lake.commit(1, lake.stage(9))
    assert (result.rows, result.files) == (1, 1)
    assert lake.head.removed == lake.head.folded == (f"{ours}.text",)
    assert [(entry.rows, entry.level) for entry in lake.head.added] == [(1, 0), (2, 1)]
    assert [entry.path for entry in lake.head.open_files] == [f"{theirs}.text"]
    assert sorted(lake.read()) == [1, 2, 7, 9]
    assert sum(split.rows or 0 for split in lake.changes.plan(3, 4).splits) == 1


def test_a_file_that_is_named_or_replaced_is_not_finished(lake: GrowingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = _attempt()
    lake.commit(0, lake.grow(ours, (), 1, 2))
    monkeypatch.setattr(Growing, "broken", AssertionError("it is not to be finished"))
    nothing = lake.grow(ours, (1, 2))
    result = lake.commit(1, nothing)
    assert (result.rows, result.files, lake.head.added) == (0, 0, ())
    assert [entry.path for entry in lake.head.open_files] == [f"{ours}.text"]
    lake.commit(2, replace(lake.stage(9), replaced=(f"{ours}.text",)), mode=spi.WriteMode.UPSERT)
    assert (lake.head.open_files, lake.read()) == ((), [9])


def test_an_overwrite_takes_open_files_away_as_they_are(lake: GrowingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.commit(0, lake.grow(_attempt(), (), 1, 2))
    monkeypatch.setattr(Growing, "broken", AssertionError("it is not to be finished"))
    lake.commit(1, lake.stage(9), mode=spi.WriteMode.OVERWRITE)
    assert (lake.head.open_files, lake.read()) == ((), [9])


@pytest.mark.parametrize("mode", [spi.WriteMode.OVERWRITE, spi.WriteMode.UPSERT])
def test_only_an_append_has_open_files(lake: GrowingLake, mode: spi.WriteMode) -> None:
    committer = lake.create_committer(spi.CommitterInitContext("c", mode=mode))
    with pytest.raises(spi.CommitError, match="a round that is no append has the file") as told:
        committer.publish(committer.open(), [lake.grow(_attempt(), (), 1)], None)
    assert not isinstance(told.value, spi.Conflict), "a conflict would be tried again"
    assert lake.head.number == 0


@pytest.mark.parametrize(
    ("broken", "lost", "error", "told"),
    [
        (OSError("no space"), 0, None, "stays open for now"),
        (spi.CorruptTable("it is shorter", where="there"), 0, OpenFileDamaged, "it is shorter"),
        (None, 1, OpenFileDamaged, "holds 1 rows, and the table knows 2"),
    ],
)
def test_a_file_that_can_not_be_finished(
    lake: GrowingLake,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    broken: Exception | None,
    lost: int,
    error: type[Exception] | None,
    told: str,
) -> None:
    ours = _attempt()
    lake.commit(0, lake.grow(ours, (), 1, 2))
    monkeypatch.setattr(Growing, "broken", broken)
    monkeypatch.setattr(Growing, "rows_lost", lost)
    if error is None:
        lake.commit(1, lake.stage(9))
        assert told in caplog.text
        assert [entry.path for entry in lake.head.open_files] == [f"{ours}.text"]
        return
    with pytest.raises(error, match=told):
        lake.commit(1, lake.stage(9))
    assert lake.head.number == 1


def test_files_of_named_pipelines_are_finished_without_rows(lake: GrowingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = _attempt(), _attempt()
    lake.commit(3, lake.grow(ours, (), 1, 2))
    lake.commit(4, lake.grow(theirs, (), 7), pipeline="q")
    maintenance = ManifestMaintenance(lake.table)
    [first, second] = maintenance.open_files()
    assert (first.pipeline, first.path, first.rows, first.bytes, first.epoch) == ("p", f"{ours}.text", 2, 3, 3)
    assert (second.pipeline, second.epoch, second.committed_at) == (
        "q",
        4,
        lake.table.open().watermark("q").committed_at,
    )  # type: ignore[union-attr]
    assert first.began_at == spi.attempt_began_at(ours)
    assert (first.committed_at, first.began_at) != (None, None)
    assert maintenance.finish_open_files(["other"]) == []
    assert lake.head.number == 2, "there was nothing to do, and so no commit"
    assert maintenance.finish_open_files(["p"]) == []
    assert [file.pipeline for file in maintenance.open_files()] == ["q"]
    assert (lake.head.number, lake.head.removed) == (3, (f"{ours}.text",))
    assert lake.table.open().watermark("p") is not None
    monkeypatch.setattr(Growing, "broken", OSError("no space"))
    assert [file.pipeline for file in maintenance.finish_open_files(["p", "q"])] == ["q"]
    assert lake.head.number == 3
    assert sorted(lake.read()) == [1, 2, 7]


def test_a_race_for_open_files_is_run_again_and_lost_copies_go(
    lake: GrowingLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit(0, lake.grow(_attempt(), (), 1, 2))
    append, lost = ManifestLog.append, [1] * 5

    def loses(manifests: ManifestLog, manifest: Manifest) -> Manifest:
        if lost:
            lost.pop()
            raise spi.Conflict("another writer was first")
        return append(manifests, manifest)

    monkeypatch.setattr(ManifestLog, "append", loses)
    before = set(lake.table.location.glob("*.text"))
    assert ManifestMaintenance(lake.table).finish_open_files(["p"]) == []
    assert len(set(lake.table.location.glob("*.text")) - before) == 1
    lake.commit(1, lake.grow(_attempt(), (), 5))
    lost += [1] * 99
    with pytest.raises(spi.Conflict):
        ManifestMaintenance(lake.table).finish_open_files(["p"])
    assert len(lost) == 79, "twenty times"


def test_a_discard_keeps_what_an_earlier_commit_recorded(lake: GrowingLake) -> None:
    ours, new = _attempt(), _attempt()
    committer = lake.create_committer(spi.CommitterInitContext("c"))
    begun = lake.grow(new, (), 5)
    odd = lake.stage(6)
    odd = replace(odd, files=(replace(odd.files[0], payload={"lines": "1", GROWTH: "{}"}),))
    worse = lake.stage(7)
    worse = replace(worse, files=(replace(worse.files[0], payload={"lines": "1", GROWTH: "no document"}),))
    odder = lake.stage(8)
    odder = replace(odder, files=(replace(odder.files[0], payload={"lines": "1", GROWTH: "5"}),))
    committer.discard([lake.grow(ours, (1, 2), 3), begun, odd, worse, odder])
    assert [path.name for path in lake.table.location.glob("*.text")] == [f"{ours}.text"]


def test_small_files_are_written_as_one(tmp_path: Path) -> None:
    lake = GrowingLake(tmp_path, Folding)
    _, counted = FILE_COUNTS.now()
    folded = [lake.commit(epoch, lake.stage(epoch)).folded for epoch in range(4)]
    assert folded == [0, 0, 2, 0]
    assert FILE_COUNTS.now()[1] == counted + 2
    assert [entry.level for entry in files_at(lake.table.manifests(), 3)] == [0, 1]
    third = lake.table.manifests().read(3)
    assert (third.folding, len(third.folded)) == ({"files": 2, "file_bytes": 100, "room": 1}, 2)
    assert third.folded == third.removed
    assert sorted(lake.read()) == [0, 1, 2, 3]
    assert [sum(split.rows or 0 for split in lake.changes.plan(n, n + 1).splits) for n in (1, 2, 3, 4)] == [1] * 4
    lake.commit(4, lake.stage(9), mode=spi.WriteMode.OVERWRITE)
    assert lake.head.folding == {"files": 2, "file_bytes": 100, "room": 1}
    lake.catalog.alter_table(PATH, [spi.SetProperty("acme.more", "new", None)])
    assert lake.head.folding == {"files": 2, "file_bytes": 100, "room": 1}, "an alteration adds no file"


@pytest.mark.parametrize(("broken", "lost"), [(ValueError("a library's"), 0), (None, 1)])
def test_files_that_can_not_be_written_as_one_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: Any, lost: int
) -> None:
    lake = GrowingLake(tmp_path, Folding)
    monkeypatch.setattr(Growing, "broken", broken)
    monkeypatch.setattr(Growing, "rows_lost", lost)
    for epoch in range(3):
        assert lake.commit(epoch, lake.stage(epoch)).folded == 0
    assert "were not written as one" in caplog.text
    assert lake.head.folding == {"files": 2, "file_bytes": 100, "room": 2}
    assert sorted(lake.read()) == [0, 1, 2]
    assert len(list(lake.table.location.glob("*.text"))) == 3


def test_what_a_commit_of_unknown_end_had_written_as_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have landed, and then the table stands on it."""
    lake = GrowingLake(tmp_path, Folding)
    for epoch in range(2):
        lake.commit(epoch, lake.stage(epoch))

    def fails(*_: Any) -> Manifest:
        raise OSError("no answer")

    committer = lake.create_committer(spi.CommitterInitContext("c"))
    staged, state = lake.stage(7), committer.open()
    before = set(lake.table.location.glob("*.text"))
    monkeypatch.setattr(ManifestLog, "append", fails)
    with pytest.raises(OSError, match="no answer"):
        committer.publish(state, [staged], None)
    assert len(set(lake.table.location.glob("*.text")) - before) == 1


def test_what_a_lost_commit_had_written_as_one_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = GrowingLake(tmp_path, Folding)
    for epoch in range(2):
        lake.commit(epoch, lake.stage(epoch))

    def loses(*_: Any) -> Manifest:
        raise spi.Conflict("another writer was first")

    committer = lake.create_committer(spi.CommitterInitContext("c"))
    staged, state = lake.stage(7), committer.open()
    before = set(lake.table.location.glob("*.text"))
    monkeypatch.setattr(ManifestLog, "append", loses)
    with pytest.raises(spi.Conflict):
        committer.publish(state, [staged], None)
    assert set(lake.table.location.glob("*.text")) == before


def test_a_format_without_either_has_neither(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.round(0, 1)
    assert (lake.table.manifests().head()[0].folding, lake.table.folding) == (None, None)
    assert kit.ManifestMaintenance(lake.table).open_files() == []
    for do in (
        lambda: lake.table.rewrite(lake.table.open(), []),
        lambda: lake.table.finish_open(lake.table.open(), ENTRY),
    ):
        with pytest.raises(NotImplementedError):
            do()


class Named(Growing):
    """A file gets its name when it is committed, and one that goes on keeps it."""

    layout: ClassVar = replace(
        Growing.layout,
        staging="in",
        attempt_of=lambda path: Growing.layout.attempt_of(path.removeprefix("in/")),
        allowed=lambda path: path.endswith(".named"),
        staged_as=lambda path: f"in/{path.partition('.')[0]}.text",
    )
    asked: ClassVar[list[Any]] = []

    def named(self, number: int, added: Sequence[FileEntry]) -> Sequence[FileEntry]:
        self.asked.append((number, [entry.rows for entry in added]))
        return [replace(entry, path=f"{entry.path[3:35]}.{number}.named") for entry in added]

    def check_open(self, entries: Sequence[FileEntry]) -> None:
        self.asked.append(("open", [entry.rows for entry in entries]))

    def check_staged(self, *_: Any) -> None:
        pass


def test_only_a_new_file_is_named_and_open_ones_are_looked_at(tmp_path: Path) -> None:
    Named.asked.clear()
    lake = GrowingLake(tmp_path, Named)
    table, committer = lake.table, lake.create_committer(spi.CommitterInitContext("c"))
    first = replace(ENTRY, path=f"in/{'a' * 32}.text")
    committer._append(table.open(), (first,), (), {}, Finished())
    [goes_on] = lake.head.added
    assert goes_on.path == f"{'a' * 32}.1.named"
    grown = replace(goes_on, rows=3, bytes=6, growth=replace(OPEN, rows=2, bytes=4, upto=6))
    other = replace(first, path=f"in/{'b' * 32}.text", growth=None)
    assert [entry.path for entry in committer._named(2, (grown, other))] == [
        f"{'a' * 32}.1.named",
        f"{'b' * 32}.2.named",
    ]
    assert Named.asked[0] == ("open", [])
    assert Named.asked[-1] == (2, [2])
    table.open()
    assert Named.asked[-1] == ("open", [2])


def test_a_file_that_grew_is_taken_from_the_blocks_before_too() -> None:
    grown = replace(ENTRY, rows=3, bytes=6, growth=replace(OPEN, rows=2, bytes=4, upto=6))
    for entry, left in ((grown, (ENTRY.path,)), (ENTRY, ()), (replace(ENTRY, growth=None), ())):
        blocks = [
            Block.of(_manifest(number=4, added=(entry,))),
            Block.of(_manifest(number=5, removed=(ENTRY.path,))),
        ]
        assert (Block.join(blocks).files, Block.join(blocks).removed) == ((), left)
