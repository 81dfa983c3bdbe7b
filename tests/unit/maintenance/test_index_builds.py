"""Builds of indexes: what their processes and others may do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from dying_builder import DyingBuilder, SpillingBuilder
from laketier.maintenance.index_builds import IndexProgress, build_here, build_in_processes, build_index, find_index
from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LakeIndexer,
    TableChanged,
    TableError,
)

SPEC = IndexSpec("text_idx", "text", IndexKind.INVERTED, {"stem": False})
INFO = IndexInfo(
    name="text_idx", column="text", kind="inverted", options={}, segments=("s",), rows_indexed=5,
    rows_not_indexed=0, snapshot_id=9,
)  # fmt: skip


class Refusing(LakeIndexer):
    """Refuses to publish, as others change the table each time."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked: list[tuple[IndexSpec, IndexMode]] = []

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        self.asked.append((spec, mode))
        return IndexPlan("p", spec, mode, 1, (IndexPart(0, ("u",), 5),), DyingBuilder())

    def publish(self, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> IndexInfo:
        self.left -= 1
        if self.left >= 0:
            raise TableChanged("compacted")
        return INFO

    def indexes(self) -> Sequence[IndexInfo]:
        return [INFO]


def test_a_process_that_dies_ends_the_build() -> None:
    parts = tuple(IndexPart(number, (str(number),), 5) for number in range(3))
    plan = IndexPlan("p", SPEC, IndexMode.CREATE, 1, parts, DyingBuilder())
    with pytest.raises(TableError, match="a process that built a part of index 'text_idx' died; nothing was published"):
        list(build_in_processes(2)(plan))


@pytest.mark.parametrize("mode", IndexMode)
def test_a_table_that_changed_is_planned_again(mode: IndexMode) -> None:
    indexer = Refusing(2)
    told: list[IndexProgress] = []
    assert build_index(indexer, SPEC, mode, max_parts=3, build=build_here, told=told.append) == INFO
    # What is appended to or merged keeps the settings that it has, some of which the format alone knows.
    again = SPEC if mode in (IndexMode.CREATE, IndexMode.REPLACE) else IndexSpec("text_idx", "text", IndexKind.INVERTED)
    assert indexer.asked == [(SPEC, mode), (again, mode), (again, mode)]
    assert [(each.parts_built, each.rows_built) for each in told] == [(0, 0), (1, 5)] * 3


def test_it_gives_up_where_others_never_stop() -> None:
    with pytest.raises(TableChanged, match="compacted"):
        build_index(Refusing(5), SPEC, IndexMode.CREATE, max_parts=3, build=build_here)


class Bounded(Refusing):
    """Its builder takes limits."""

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        return replace(super().plan(spec, max_parts, mode), builder=SpillingBuilder())


@pytest.mark.parametrize(
    ("kind", "memory", "warned"),
    [(IndexKind.INVERTED, 199, True), (IndexKind.INVERTED, 200, False), (IndexKind.BTREE, 199, False)],
)
def test_a_part_that_took_more_than_it_may_is_told(
    kind: IndexKind, memory: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a kind that is sorted, the sort alone is bounded."""

    def build(plan: IndexPlan) -> Iterator[BuiltIndexPart]:
        for part in plan.parts:
            yield BuiltIndexPart("p", part, "s", 1, "", part.rows, 1, "", peak_memory=300, base_memory=100)

    spec, resources = IndexSpec("text_idx", "text", kind), IndexResources(memory=memory)
    build_index(Bounded(0), spec, IndexMode.CREATE, max_parts=1, build=build, resources=resources)
    assert ("index text_idx: part 0 took 200 bytes, though memory = 199" in caplog.text) is warned


def test_a_name_that_is_not_there_is_told_with_the_nearest() -> None:
    assert find_index(Refusing(0), "text_idx") == INFO
    with pytest.raises(ConfigError, match="Did you mean 'text_idx'"):
        find_index(Refusing(0), "txt_idx")
