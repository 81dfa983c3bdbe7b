"""Which files of a table its metadata names, read with each format's own library or from the metadata itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow.parquet as pq

from laketier.spi import TableInfo

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable


@dataclass(frozen=True)
class Referenced:
    """Paths relative to the table. ``by_any_snapshot``: also the metadata. ``by_current``: data files only."""

    by_any_snapshot: frozenset[str]
    by_current: frozenset[str]


def files(format: str, info: TableInfo) -> Referenced:
    """Reads all of the table's history."""
    return _FORMATS[format](info)


def _delta(info: TableInfo) -> Referenced:
    """The log's entries are read as they are: delta-rs gives the files of a version, and no pointers."""
    import deltalake

    root = Path(info.location)
    entries = sorted((root / "_delta_log").glob("[0-9]*.json"))
    known = {f"_delta_log/{path.name}" for path in (root / "_delta_log").glob("[0-9]*.checkpoint*.parquet")}
    known |= {f"_delta_log/{path.name}" for path in entries}
    known |= {"_delta_log/_last_checkpoint"}
    actions = [json.loads(line) for entry in entries for line in entry.read_text(encoding="utf-8").split("\n") if line]
    for path in (root / "_delta_log").glob("*.checkpoint*.parquet"):  # what entries that were cleaned up said
        actions += pq.read_table(path, columns=["add", "txn"]).to_pylist()
    for action in actions:
        if action.get("add"):
            known.add(unquote(action["add"]["path"]))
        name = (action.get("txn") or {}).get("appId", "")
        if name.startswith("laketier/record/"):
            folder = quote(name.removeprefix("laketier/record/"), safe="").replace(".", "%2E")
            known.add(f"_laketier/{folder}/{action['txn']['version']:016x}.json")
    current = {unquote(_below(root, uri)) for uri in deltalake.DeltaTable(info.location).file_uris()}
    return Referenced(frozenset(known), frozenset(current))


def iceberg_table(info: TableInfo) -> StaticTable:
    """The table as its newest metadata file says, which is asked of the embedded catalog's database itself."""
    from pyiceberg.table import StaticTable

    database = Path(urlsplit(info.location).path).parent.parent / "catalog.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        row = connection.execute(
            "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?",
            (info.path.database, info.path.table),
        ).fetchone()
    return StaticTable.from_metadata(row[0])


def _iceberg(info: TableInfo) -> Referenced:
    table = iceberg_table(info)
    root = Path(urlsplit(info.location).path)
    metadata = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    metadata |= {file.statistics_path for file in table.metadata.statistics}
    by_snapshot: dict[int, set[str]] = {}
    for snapshot in table.snapshots():
        metadata.add(snapshot.manifest_list)
        data = by_snapshot.setdefault(snapshot.snapshot_id, set())
        for manifest in snapshot.manifests(table.io):
            metadata.add(manifest.manifest_path)
            data |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    current = table.current_snapshot()
    live = by_snapshot[current.snapshot_id] if current else set()
    everything = metadata.union(*by_snapshot.values())
    return Referenced(
        frozenset(_below(root, path) for path in everything), frozenset(_below(root, path) for path in live)
    )


def _lance(info: TableInfo) -> Referenced:
    import lance

    root = Path(info.location)
    dataset = lance.dataset(info.location)
    known = {"_versions/latest_version_hint.json"}
    current: set[str] = set()
    for version in dataset.versions():
        number = version["version"]
        known |= {f"_versions/{number}.manifest", f"_versions/{2**64 - 1 - number}.manifest"}
        at = lance.dataset(info.location, version=number)
        data = set()
        for fragment in at.get_fragments():
            metadata = fragment.metadata
            data |= {f"data/{file.path}" for file in metadata.files}
            if metadata.deletion_file is not None:
                known.add(metadata.deletion_file.path(metadata.id))
        known |= data
        transaction = at.read_transaction(number)
        if transaction is not None:
            known.add(f"_transactions/{transaction.read_version}-{transaction.uuid}.txn")
        if number == dataset.version:
            current = data
    for index in dataset.describe_indices():
        for segment in index.segments:
            folder = root / "_indices" / str(segment.uuid)
            known |= {path.relative_to(root).as_posix() for path in folder.rglob("*")}
    return Referenced(frozenset(known), frozenset(current))


def _localfile(info: TableInfo) -> Referenced:
    """From the manifests' JSON alone."""
    root = Path(info.location)
    folder = root / "_laketier_manifests"
    uuid = _body(folder / "table.json")["table_uuid"]
    manifests = sorted(path for path in (folder / uuid).glob("*.json") if path.stem.isdecimal())
    known = {"_laketier_manifests/table.json", f"_laketier_manifests/{uuid}/head.json"}
    known |= {path.relative_to(root).as_posix() for path in [*manifests, *(folder / uuid / "rollups").glob("*.json")]}
    current: set[str] = set()
    body: dict[str, Any] = {}
    for path in manifests:
        body = _body(path)
        added = {entry["path"] for entry in body["added"]}
        current = added if body["kind"] == "overwrite" else current.difference(body.get("removed", ())) | added
        known |= added
        known |= {f"__superseded/{name.rpartition('/')[2]}.superseded" for name in added}
    growing = [*body["added"], *body.get("open", ())]
    known |= {f"__in_progress/{each['path'].rpartition('/')[2]}.inprogress" for each in growing if _is_open(each)}
    return Referenced(frozenset(known), frozenset(current))


def _is_open(entry: dict[str, Any]) -> bool:
    return bool(entry.get("growth", {}).get("open"))


def _body(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_bytes())["body"]
    return body


def _below(root: Path, location: str) -> str:
    return Path(urlsplit(location).path if "://" in location else location).relative_to(root).as_posix()


_FORMATS: Mapping[str, Callable[[TableInfo], Referenced]] = {
    "delta": _delta,
    "iceberg": _iceberg,
    "lance": _lance,
    "localfile": _localfile,
}
