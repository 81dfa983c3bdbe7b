"""The order in which things reach the disk: every step is durable before the next relies on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import WriteMode


class Trace:
    """The calls that decide about durability, as they are made: (what, path below the table)."""

    def __init__(self, location: Path) -> None:
        self._location = location
        self.steps: list[tuple[str, str]] = []

    def add(self, what: str, path: Any) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path))
        if path.is_relative_to(self._location):
            self.steps.append((what, str(path.relative_to(self._location))))

    def first(self, what: str, matches: Callable[[str], bool]) -> int:
        return next(i for i, (step, path) in enumerate(self.steps) if step == what and matches(path))

    def last(self, what: str, matches: Callable[[str], bool]) -> int:
        return max(i for i, (step, path) in enumerate(self.steps) if step == what and matches(path))


@pytest.fixture
def traced(make_table: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Trace]:
    table = make_table(partition_by=("region",))
    trace = Trace(table.location)
    real_fsync, real_link, real_unlink = os.fsync, os.link, os.unlink

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        trace.add("fsync", descriptor)

    def link(source: Any, target: Any, *, dst_dir_fd: int | None = None, **more: Any) -> None:
        real_link(source, target, dst_dir_fd=dst_dir_fd, **more)
        trace.add("link", target if dst_dir_fd is None else below(dst_dir_fd, target))

    def unlink(path: Any, *, dir_fd: int | None = None) -> None:
        real_unlink(path, dir_fd=dir_fd)
        trace.add("unlink", path if dir_fd is None else below(dir_fd, path))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(os, "unlink", unlink)
    return table, trace


def below(folder: int, name: str) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{folder}"), name)


def is_manifest(path: str) -> bool:
    return path.endswith("0001.json") and "/." not in path


def is_staged(path: str) -> bool:
    return path.endswith(".inprogress")


def is_final(path: str) -> bool:
    return path.startswith("region=") and path.endswith(".parquet")


def is_final_folder(path: str) -> bool:
    return path.startswith("region=") and not path.endswith(".parquet")


def test_data_is_durable_before_the_manifest_and_names_before_the_staged_ones_go(traced: tuple[Any, Trace]) -> None:
    table, trace = traced
    table.round(0)
    manifest = trace.first("link", is_manifest)
    assert sum(1 for what, path in trace.steps if what == "fsync" and is_staged(path)) == 4
    assert trace.last("fsync", is_staged) < trace.first("fsync", lambda p: p == "__in_progress") < manifest
    assert trace.first("fsync", lambda p: p.endswith(".tmp")) < manifest
    after = trace.steps[manifest:]
    durable = manifest + after.index(("fsync", f"_laketier_manifests/{table.log.table_uuid}"))
    assert manifest < durable < trace.first("link", is_final), "the manifest's name is durable before a file shows"
    for folder in {os.path.dirname(path) for what, path in trace.steps if what == "link" and is_final(path)}:
        linked = trace.last("link", lambda p, folder=folder: os.path.dirname(p) == folder)
        synced = trace.last("fsync", lambda p, folder=folder: p == folder)
        assert linked < synced < trace.first("unlink", is_staged)
    new_folders = trace.first("fsync", lambda p: p == ".")
    assert new_folders < trace.first("unlink", is_staged), "the new folders are durable in the table's"


def test_superseded_files_have_their_new_name_durably_before_they_lose_the_old(traced: tuple[Any, Trace]) -> None:
    table, trace = traced
    table.round(0)
    trace.steps.clear()
    table.round(1, table.ids(1), mode=WriteMode.OVERWRITE)
    linked = trace.last("link", lambda p: p.startswith("__superseded/"))
    synced = trace.first("fsync", lambda p: p == "__superseded")
    removed = trace.first("unlink", is_final)
    assert linked < synced < removed
    assert removed < trace.first("fsync", is_final_folder) < trace.first("link", is_final)
    assert trace.last("unlink", is_final) < trace.first("link", is_final), "plain readers never see both"
