"""A writer of one file, and the storage around it: the author's part is how to begin a file."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi

SCHEMA = pa.schema([("id", pa.int64())])
NAMES = kit.AttemptNames(".arrow")
ATTEMPT = "0" * 31 + "a"
LOCAL = {feature: spi.FULL for feature in spi.Feature if feature is not spi.Feature.OBJECT_STORES}


class ArrowTable(kit.ManifestTable):
    layout: ClassVar = kit.ManifestLayout("arrows", "_arrows", NAMES.attempt_of)
    features: ClassVar = LOCAL

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        pass


class ArrowWriter(kit.OneFileWriter):
    names: ClassVar = NAMES

    def __init__(self, table: spi.TableInfo, attempt: str, codec: str = "") -> None:
        super().__init__(table, attempt)
        self.codec = codec

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return pa.ipc.new_file(str(path), schema)

    def details(self, path: Path) -> dict[str, str]:
        return {"rows": str(pa.ipc.open_file(str(path)).read_all().num_rows)}


@pytest.fixture
def table(tmp_path: Path) -> spi.TableInfo:
    return spi.TableInfo(spi.TablePath("db", "t"), spi.TableDescriptor(SCHEMA), "u", str(tmp_path))


def test_the_file_is_synced_and_then_its_name(
    table: spi.TableInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((path, os.stat(path).st_size if os.path.isfile(path) else 0))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    writer = ArrowWriter(table, ATTEMPT)
    writer.write(pa.record_batch({"id": pa.array([1, 2], pa.int16())}))
    writer.write(pa.record_batch({"id": pa.array([], pa.int64())}))
    (file,) = writer.complete().files
    path = tmp_path / f"{ATTEMPT}.arrow"
    assert synced == [(str(path), file.bytes), (str(tmp_path), 0)], "the complete file, and then its folder"
    assert (file.path, file.rows, file.payload) == (path.name, 2, {"rows": "2"})
    assert pa.ipc.open_file(str(path)).read_all().schema == SCHEMA, "the file has the types of the table"


def test_without_rows_there_is_no_file(table: spi.TableInfo, tmp_path: Path) -> None:
    writer = ArrowWriter(table, ATTEMPT)
    writer.write(pa.RecordBatch.from_pylist([], SCHEMA))
    assert writer.complete().files == ()
    assert list(tmp_path.iterdir()) == []


def test_an_aborted_file_is_gone(table: spi.TableInfo, tmp_path: Path) -> None:
    writer = ArrowWriter(table, ATTEMPT)
    writer.write(pa.record_batch({"id": pa.array([1])}))
    writer.abort()
    writer.abort()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["x.arrow", f"{ATTEMPT}.arrow2", f"{ATTEMPT}", f"a/{ATTEMPT}.arrow", f"{ATTEMPT}.arrow\n", ".arrow"]
)
def test_other_names_are_of_no_attempt(path: str) -> None:
    assert NAMES.attempt_of(path) is None
    assert NAMES.attempt_of(NAMES.name(ATTEMPT)) == ATTEMPT


def test_a_factory_hands_options_to_the_writer(table: spi.TableInfo) -> None:
    factory = kit.ManifestFactory(table, ArrowTable, partial(ArrowWriter, codec="zstd"))
    writer = pickle.loads(pickle.dumps(factory)).create_writer(spi.WriterInitContext(ATTEMPT))  # noqa: S301 - our own bytes
    assert (writer.codec, writer.names) == ("zstd", NAMES)


def test_the_warehouse_is_a_folder(tmp_path: Path) -> None:
    def folder(warehouse: str) -> Path:
        return kit.warehouse_folder(warehouse, format="arrows", features=LOCAL)

    assert folder(str(tmp_path)) == folder(f"file://{tmp_path}") == folder(f"{tmp_path}/a/..") == tmp_path
    for wrong, error in (
        ("s3://b/k", spi.FeatureNotSupported),
        ("file://host/p", spi.ConfigError),
        (" ", spi.ConfigError),
    ):
        with pytest.raises(error):
            folder(wrong)
