"""Which manifests a commit reads, writes again and leaves as they are; and names of catalogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import ManifestContent, ManifestFile

from laketier.spi import ConfigError, Passthrough
from laketier_iceberg.connection import EMBEDDED_NAME, CatalogSettings
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.references import locations
from laketier_iceberg.snapshot_writer import SnapshotWriter
from laketier_iceberg.transaction import Leaving
from laketier_iceberg.unread import _is_known

TARGET, LEAST = "commit.manifest.target-size-bytes", "commit.manifest.min-count-to-merge"


class Told(SnapshotWriter):
    """Tells what it would merge, and writes nothing."""

    def _merge(self, spec_id: int, manifests: Sequence[ManifestFile]) -> Any:
        return spec_id, [manifest.manifest_length for manifest in manifests]


def of(length: int, spec_id: int = 0, content: ManifestContent = ManifestContent.DATA) -> ManifestFile:
    return ManifestFile.from_args(
        manifest_path=f"m{length}", manifest_length=length, partition_spec_id=spec_id, content=content
    )


@pytest.mark.parametrize(
    ("lengths", "least", "groups"),
    [
        ((3, 7, 6), 1, [[3, 7], [6]]),
        ((7, 6, 3), 1, [[7], [6, 3]]),
        ((3, 7, 6, 2, 9), 1, [[3, 7], [6, 2], [9]]),
        ((1, 1, 1), 3, [[1, 1, 1]]),
        ((1, 1), 3, [[1], [1]]),
        ((1, 1, 9, 5, 5), 3, [[1], [1], [9], [5, 5]]),
        ((11, 4, 6), 9, [[11], [4, 6]]),
        ((5, 5), 2, [[5, 5]]),
        ((5, 6), 1, [[5], [6]]),
    ],
)
def test_neighbours_become_one_manifest(
    make: Callable[..., Any], lengths: tuple[int, ...], least: int, groups: list[list[int]]
) -> None:
    """Up to the size, from the oldest on, and none beyond one that did not fit: what was written together is together.
    The newest ones wait until there are enough of them."""
    table = make(properties={TARGET: "10", LEAST: str(least), "commit.manifest-merge.enabled": "true"}).table()
    merged: Any = Told(table).merged([of(length) for length in lengths])
    found = [each[1] if isinstance(each, tuple) else [each.manifest_length] for each in merged]
    assert found == groups


def test_only_manifests_of_one_spec_and_of_data_become_one(make: Callable[..., Any]) -> None:
    table = make(properties={TARGET: "10", LEAST: "1", "commit.manifest-merge.enabled": "true"}).table()
    deletes = of(1, content=ManifestContent.DELETES)
    merged: Any = Told(table).merged([of(1), of(2, 1), deletes, of(3), of(4, 1)])
    assert merged == [(1, [2, 4]), (0, [1, 3]), deletes]
    assert Told(table).merged([deletes]) == [deletes]
    off: Any = Told(make(properties={LEAST: "1", "commit.manifest-merge.enabled": "false"}, name="off").table())
    given = [of(1), of(2)]
    assert off.merged(given) == given


def test_a_manifest_that_was_merged_as_it_was_made_is_gone(make: Callable[..., Any]) -> None:
    """No snapshot names it, so nobody but a collection of orphans would find it."""
    made = make(properties={LEAST: "0", "commit.manifest-merge.enabled": "true"})
    for epoch in range(3):
        made.round(made.token(epoch), made.batch(epoch * 10, epoch * 10 + 2))
    table = made.table()
    named = {location.rpartition("/")[2] for location in locations(table)}
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    assert sorted(path.name for path in folder.glob("*.avro") if path.name not in named) == []
    assert len(table.current_snapshot().manifests(table.io)) == 1


def test_only_manifests_of_files_that_leave_are_written_again(make: Callable[..., Any]) -> None:
    """The others keep their names. Of those that are older than what is looked for none is read."""
    table = make()
    for epoch in range(4):
        table.round(table.token(epoch), table.batch(epoch, epoch + 1))
    loaded = table.table()
    manifests = loaded.current_snapshot().manifests(loaded.io)
    paths = [
        entry.data_file.file_path for manifest in manifests for entry in manifest.fetch_manifest_entry(loaded.io, True)
    ]
    assert len(manifests) == len(paths) == 4
    for chosen in ([1], [0, 2], [3], []):
        leaving = Leaving.of(loaded, [paths[number] for number in chosen])
        assert sorted(leaving.manifests) == sorted(manifests[number].manifest_path for number in chosen)
        assert leaving.paths == {paths[number] for number in chosen}
    unknown = Leaving.of(loaded, [paths[2], "file:///elsewhere"])
    assert unknown.paths == {paths[2]}
    assert list(unknown.manifests) == [manifests[2].manifest_path]
    empty = make(name="empty").table()
    assert (Leaving.of(empty, paths).paths, Leaving.of(empty, paths).manifests) == (frozenset(), {})


def test_the_name_of_a_catalog() -> None:
    """One that is told by its properties alone has the name of the embedded one."""
    told = Passthrough({"type": "rest"})
    for options, name, properties in (
        (IcebergOptions(catalog=told), EMBEDDED_NAME, told),
        (IcebergOptions(catalog=told, catalog_name="mine"), "mine", told),
        (IcebergOptions(catalog_name="mine"), "mine", Passthrough()),
    ):
        found = CatalogSettings.of("s3://b/w", options)
        assert found == CatalogSettings(name, "s3://b/w", False, properties)
    with pytest.raises(ConfigError, match="needs a catalog"):
        CatalogSettings.of("s3://b/w", IcebergOptions())
    assert CatalogSettings.of("/w", IcebergOptions()) == CatalogSettings(EMBEDDED_NAME, "/w", True)


@pytest.mark.parametrize(
    ("kind", "default", "known"),
    [
        ("int", None, True),
        ("int", 1, True),
        ("date", "2020-01-01", True),
        ("date", "soon", False),
        ("fixed[3]", 1, False),
        ("decimal(3, 1)", "x", False),
        ("geometry", "POINT (1 2)", False),
        ("binary", "no hex", False),
        ("colour", None, False),
    ],
)
def test_a_default_that_pyiceberg_does_not_read_is_none_that_is_known(kind: str, default: Any, known: bool) -> None:
    assert _is_known(kind, default) is known
