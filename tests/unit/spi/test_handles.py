"""Handles of tables, and states of formats that know nothing of them."""

from __future__ import annotations

import copy
import gc
import pickle
from dataclasses import asdict, fields, replace
from typing import Any

import pyarrow as pa

from laketier.spi import (
    LakeCatalog,
    LakeSource,
    LakeStorage,
    LakeTieringFactory,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
)
from memory_lake import MemoryFactory, MemoryState, MemoryTable

INFO = TableInfo(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])), "uuid", "/w/db/t", 1)


class Handle:
    """Of a library whose objects do not travel."""

    def __reduce__(self) -> Any:
        raise AssertionError("a handle was pickled")


def test_a_handle_stays_with_the_description_that_was_loaded_with_it() -> None:
    handle = Handle()
    loaded = INFO.with_handle(handle)
    assert (INFO.handle, loaded.handle) == (None, handle)
    assert loaded == INFO
    assert repr(loaded) == repr(INFO)
    assert replace(loaded, snapshot_id=2).handle is None, "another description is of no table that was loaded"
    for travelled in (pickle.loads(pickle.dumps(loaded)), copy.copy(loaded), copy.deepcopy(loaded)):  # noqa: S301
        assert travelled == INFO
        assert travelled.handle is None


def test_a_handle_is_no_field() -> None:
    """What stores a description, shows it or compares it, has nothing to do with handles."""
    loaded = INFO.with_handle(Handle())
    assert not [field.name for field in fields(loaded) if "handle" in field.name]
    assert asdict(loaded) == asdict(INFO)


def test_only_a_plan_of_what_is_current_is_of_a_state() -> None:
    state = MemoryTable().state
    assert ScanRequest(state=state).seen(MemoryState) is state
    assert ScanRequest(state=state, snapshot_id=1).seen(MemoryState) is None
    assert ScanRequest(state=state, as_of=1).seen(MemoryState) is None
    assert ScanRequest().seen(MemoryState) is None

    class Another(MemoryState):
        """Of another format."""

    assert ScanRequest(state=state).seen(Another) is None
    assert ScanRequest(state=state) == ScanRequest()


class Older(LakeStorage):
    """Of a plugin from before `LakeStorage.state`."""

    def __init__(self, table: MemoryTable) -> None:
        self.table = table

    def catalog(self) -> LakeCatalog:
        raise AssertionError

    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        return MemoryFactory(self.table)

    def source(self, table: TableInfo) -> LakeSource:
        raise AssertionError


def test_an_older_plugin_is_asked_by_a_committer_that_lives_as_long_as_its_state() -> None:
    table = MemoryTable()
    state = Older(table).state(table.info)
    assert table.calls == ["open"]
    assert state.watermark("p") is None
    assert state.snapshot_id is None
    del state
    gc.collect()
    assert table.calls == ["open", "close"]


def test_a_committer_that_can_not_open_is_closed() -> None:
    table = MemoryTable()
    table.opens = [OSError("gone")]
    try:
        Older(table).state(table.info)
    except OSError:
        pass
    else:
        raise AssertionError
    assert table.calls == ["open", "close"]
