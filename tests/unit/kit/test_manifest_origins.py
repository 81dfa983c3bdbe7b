"""Tables of manifests that were made of files which lay there, and what every document of theirs says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.kit.local_store import LocalStore
from laketier.kit.manifests.document import encode
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.manifest import ADOPTED, REBUILT
from laketier.spi.maintenance import COLLECTOR
from laketier.tiering import TieringRound
from text_lake import PATH, SCHEMA, Lake, TextTable

THEIRS = FileEntry("2026/theirs", 2, 3, 0, details={"lines": 2})


class Adopting(TextTable):
    """Files of any name in a folder of a year, too, where they lay before the table."""

    layout: ClassVar = replace(TextTable.layout, adoptable=lambda path: path.startswith("2026/"))


class AdoptedLake(Lake):
    """A table that was made of one file."""

    def __init__(self, warehouse: Path, origin: str = ADOPTED) -> None:
        self.looks = 0
        file = warehouse / "db" / "t" / THEIRS.path
        file.parent.mkdir(parents=True)
        file.write_text("1\n2")
        catalog = kit.ManifestCatalog(Adopting, warehouse, manifests_per_rollup=2)
        self.made = catalog.create_of(
            PATH, spi.TableDescriptor(SCHEMA), [THEIRS], origin=origin, last_look=self._last_look
        )
        super().__init__(warehouse, Adopting)

    def _last_look(self) -> None:
        self.looks += 1


def _origins(lake: Lake) -> Mapping[str, tuple[Any, int]]:
    """What each document says, and its version."""
    bodies = {path.name: json.loads(path.read_bytes())["body"] for path in lake.table.manifests().folder.rglob("0*")}
    return {name: (body.get("origin"), body["version"]) for name, body in bodies.items()}


def test_a_table_of_files_that_lie_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake = AdoptedLake(tmp_path)
    assert (lake.looks, lake.made.table_uuid) == (1, lake.info.table_uuid)
    assert lake.read() == [1, 2]
    lake.round(0, 3)
    lake.catalog.alter_table(PATH, [spi.SetProperty("acme.more", "new", None)])
    lake.round(1, 4)
    assert lake.read() == [1, 2, 3, 4]
    assert [info.operation for info in lake.history.snapshots(9)] == ["append", "alter", "append", "adopt"]
    assert [split.rows for split in lake.changes.plan(0, 4).splits] == [2, 1, 1]
    assert "damaged rollup" not in caplog.text
    assert set(_origins(lake).values()) == {(ADOPTED, 5)}
    assert len(_origins(lake)) == 4 + 3
    assert lake.table.open().watermark("other") is None


def test_a_table_that_was_rebuilt_does_not_know_its_pipelines(tmp_path: Path) -> None:
    lake = AdoptedLake(tmp_path, REBUILT)
    assert lake.history.snapshots(1)[0].operation == "rebuild"
    state = lake.table.open()
    assert state.watermark(COLLECTOR) is None
    with pytest.raises(spi.RolledBack, match="it is not known which rows of pipeline 'p' are in the table"):
        state.watermark("p")
    known = spi.Watermark(spi.Token("p", "run", 4), "c")
    lake.create_committer(spi.CommitterInitContext("c")).publish(state, [lake.stage(3)], known)
    assert lake.table.open().watermark("p") == known.carried_by(1)


def test_the_last_look_is_the_last(tmp_path: Path) -> None:
    """What it raises ends the creation, and nothing of ours stays beside the files."""

    def raises() -> None:
        documents = [path.name for path in (tmp_path / "db" / "t" / "_text").rglob("*.json")]
        assert documents == [f"{0:020}.json"], "the manifest is there, and the table is not"
        raise spi.IncompatibleTable("a file is another one by now")

    catalog = kit.ManifestCatalog(Adopting, tmp_path)
    with pytest.raises(spi.IncompatibleTable, match="another one by now"):
        catalog.create_of(PATH, spi.TableDescriptor(SCHEMA), [THEIRS], origin=ADOPTED, last_look=raises)
    assert not list((tmp_path / "db" / "t").rglob("*.json"))


def test_a_table_that_somebody_makes_of_the_files_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = kit.ManifestCatalog(Adopting, tmp_path)

    def theirs() -> None:
        catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))

    with pytest.raises(spi.IncompatibleTable, match="another process made a table of the folder meanwhile"):
        catalog.create_of(PATH, spi.TableDescriptor(SCHEMA), [THEIRS], origin=ADOPTED, last_look=theirs)
    assert catalog.load_table(PATH).snapshot_id == 0
    assert len(list((tmp_path / "db" / "t" / "_text").glob("*/0*.json"))) == 1

    def refused(store: LocalStore) -> None:
        raise PermissionError(13, "Permission denied", store.root)

    monkeypatch.setattr(LocalStore, "make", refused)
    with pytest.raises(spi.StorageError, match="creating the table was refused"):
        catalog.create_of(PATH, spi.TableDescriptor(SCHEMA), [THEIRS], origin=ADOPTED, last_look=theirs)


@pytest.mark.parametrize(
    ("table_type", "origin", "path", "told"),
    [
        (Adopting, "", THEIRS.path, "not the path of a data file"),
        (TextTable, ADOPTED, THEIRS.path, "not the path of a data file"),
        (Adopting, ADOPTED, "other/theirs", "not the path of a data file"),
        (Adopting, ADOPTED, "../theirs", "theirs"),
    ],
)
def test_a_file_that_is_none_of_the_formats(
    tmp_path: Path, table_type: type[TextTable], origin: str, path: str, told: str
) -> None:
    lake = Lake(tmp_path / "lake", table_type)
    first = lake.table.manifests().read(0)
    forged = replace(first, added=(replace(THEIRS, path=path),), origin=origin)
    lake.table.manifests().path(0).write_bytes(forged.encode())
    (lake.table.manifests().folder / "head.json").unlink()
    with pytest.raises(spi.CorruptTable, match=f"(?s){told}.*Nothing outside of the table was touched"):
        lake.table.open()


def test_a_name_of_the_formats_own_stays_one_in_an_adopted_table(tmp_path: Path) -> None:
    lake = AdoptedLake(tmp_path)
    lake.round(0, 3)
    assert lake.read(snapshot_id=1) == [1, 2, 3]
    old = THEIRS.path
    tiering = TieringRound(lake, token=spi.Token("p", "run", 1), mode=spi.WriteMode.UPSERT)  # type: ignore[arg-type]
    tiering.begin()
    tiering.commit([replace(lake.stage(9), replaced=(old,))])
    assert lake.read() == [3, 9]


@pytest.mark.parametrize(
    "change", [{"origin": "adopted", "version": 1}, {"origin": "stolen"}, {"origin": None}, {"version": 5}]
)
def test_an_origin_that_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    """A reader of an older version would have passed over it, so no version but its own may tell of one."""
    lake = Lake(tmp_path / "lake")
    path = lake.table.manifests().path(0)
    body = json.loads(path.read_bytes())["body"]
    path.write_bytes(encode(body | change))
    (path.parent / "head.json").unlink()
    with pytest.raises(spi.CorruptTable, match="the origin is"):
        lake.table.open()


def test_an_adopted_table_has_the_checks_of_any(tmp_path: Path) -> None:
    catalog = kit.ManifestCatalog(Adopting, tmp_path)
    with pytest.raises(spi.UnsupportedType):
        catalog.create_of(
            PATH,
            spi.TableDescriptor(pa.schema([("name", pa.string())])),
            [],
            origin=ADOPTED,
            last_look=lambda: None,
        )
    assert not list(tmp_path.iterdir())
