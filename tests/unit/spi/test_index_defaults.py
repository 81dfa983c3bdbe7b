"""What builds of indexes do by themselves, whatever the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from laketier.spi import (
    BuiltIndexPart,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    LakeIndexer,
)


class Builder(LakeIndexBuilder):
    def build(self, part: IndexPart) -> BuiltIndexPart:
        raise AssertionError


class Older(LakeIndexer):
    """Of a plugin of an earlier release."""


class Planner(LakeIndexer):
    def __init__(self) -> None:
        self.planned: list[tuple[Any, ...]] = []

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        self.planned.append((spec, max_parts, mode))
        return replace(PLAN, plan_id="again")


SPEC = IndexSpec("by_doc", "doc", IndexKind.BTREE, {"zone": 3})
PLAN = IndexPlan("plan", SPEC, IndexMode.CREATE, 7, (IndexPart(0, ("a",), 1),), Builder())


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda indexer: indexer.plan(SPEC, 1), "it plans none"),
        (lambda indexer: indexer.publish(PLAN, []), "it publishes none"),
        (lambda indexer: indexer.indexes(), "it lists none"),
        (lambda indexer: indexer.drop("by_doc"), "it drops none"),
    ],
)
def test_an_indexer_refuses_what_it_leaves_out(call: Callable[[LakeIndexer], object], why: str) -> None:
    with pytest.raises(FeatureNotSupported, match=why):
        call(Older())


@pytest.mark.parametrize("mode", IndexMode)
def test_what_was_refused_is_planned_anew(mode: IndexMode) -> None:
    """With the settings that the index has by then, where it stays."""
    indexer = Planner()
    assert indexer.replan(replace(PLAN, mode=mode), [], 5).plan_id == "again"
    stays = mode in (IndexMode.APPEND, IndexMode.MERGE)
    assert indexer.planned == [(replace(SPEC, options={}) if stays else SPEC, 5, mode)]
    assert indexer.resume(PLAN, 5) is PLAN


def test_a_builder_does_nothing_of_its_own() -> None:
    builder = Builder()
    assert builder.needs_training is False
    assert builder.train() is builder
    assert builder.environment == {}
    builder.warm_up()


@pytest.mark.parametrize(("name", "told"), [("memory", "memory"), ("partition_size", "partition-size")])
def test_a_builder_without_limits_refuses_each(name: str, told: str) -> None:
    builder = Builder()
    assert builder.within(IndexResources(workers=2, spill="/s")) is builder, "these are for who runs the tasks"
    with pytest.raises(FeatureNotSupported, match=f"{told} of an index build.*it has no such limit"):
        builder.within(IndexResources(**{name: 0}))


def test_limits_that_a_process_of_its_own_has() -> None:
    owns = {"memory": 0, "spill": ""}
    assert all(IndexResources(**{name: value}).needs_own_process for name, value in owns.items())
    assert not IndexResources(workers=1, partition_size=1).needs_own_process
    assert IndexResources(**owns).needs_own_process


@pytest.mark.parametrize(
    ("base", "peak", "taken"), [(0, 50, 0), (20, 50, 30), (1, 50, 49), (50, 50, 0), (60, 50, 0), (20, 0, 0)]
)
def test_the_memory_that_a_part_took(base: int, peak: int, taken: int) -> None:
    built = BuiltIndexPart("plan", PLAN.parts[0], "s", 7, "{}", 1, 1, "", peak_memory=peak, base_memory=base)
    assert built.memory_taken == taken
