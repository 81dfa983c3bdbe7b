"""What a task takes of its host, and who says so."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from dying_builder import DyingBuilder, EnvironmentBuilder, SpillingBuilder
from laketier.config.indexes import IndexSection
from laketier.config.sizes import size_of
from laketier.maintenance import index_tasks
from laketier.maintenance.index_builds import IndexProgress, build_here, build_in_processes, said_beside
from laketier.maintenance.index_policy import policy_of
from laketier.maintenance.index_tasks import build_part
from laketier.spi import (
    UNLIMITED,
    ConfigError,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
)

MIB = 1024**2
SPEC = IndexSpec("x", "text", IndexKind.INVERTED)


def plan(resources: IndexResources, parts: int = 2) -> IndexPlan:
    cut = tuple(IndexPart(number, (str(number),), 1000) for number in range(parts))
    return IndexPlan("p", SPEC, IndexMode.CREATE, 1, cut, SpillingBuilder(), resources=resources)


def test_what_is_spilled_goes_to_the_folder_and_is_gone(tmp_path: Path) -> None:
    before = os.environ.get("TMPDIR")
    for build in (build_here, build_in_processes(2)):
        built = list(build(plan(IndexResources(spill=str(tmp_path)))))
        for each in built:
            pid, _, file = each.settings.partition(" ")
            assert Path(file).is_relative_to(tmp_path)
            assert int(pid) != os.getpid(), "variables are set in a process of its own"
        assert list(tmp_path.iterdir()) == []
    assert os.environ.get("TMPDIR") == before
    here = build_part(SpillingBuilder(), plan(UNLIMITED).parts[0], IndexResources(spill=str(tmp_path)))
    assert str(tmp_path) in here.settings
    assert os.environ.get("TMPDIR") == before


def test_no_folder_to_spill_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere can't be spilled to"):
        list(build_here(plan(IndexResources(spill=str(tmp_path / "nowhere")))))


def test_without_limits_parts_are_built_in_this_process() -> None:
    assert {each.settings.partition(" ")[0] for each in build_here(plan(UNLIMITED))} == {str(os.getpid())}


@pytest.mark.parametrize("resources", [UNLIMITED, IndexResources(partition_size=MIB)])
def test_a_builder_with_variables_has_a_process_of_its_own(resources: IndexResources) -> None:
    built = list(build_here(replace(plan(resources), builder=EnvironmentBuilder())))
    assert [each.settings for each in built] == ["few few"] * 2
    assert str(os.getpid()) not in {each.payload for each in built}


def test_workers_bound_the_processes() -> None:
    built = list(build_in_processes(4)(plan(IndexResources(workers=1), parts=3)))
    assert len({each.settings.partition(" ")[0] for each in built}) == 1


def test_the_memory_of_each_part_is_told() -> None:
    small, large = (replace(plan(UNLIMITED).parts[0], rows=rows) for rows in (1, 300 * MIB))
    little, much = (build_part(SpillingBuilder(), part, UNLIMITED).peak_memory for part in (small, large))
    assert little > MIB
    assert much - little > 200 * MIB
    assert build_part(SpillingBuilder(), small, UNLIMITED).peak_memory < much - 200 * MIB, "of each part by itself"
    done = IndexProgress("x", 2, 2, 10, 10, 1, 1000, (5_000_000, 7_000_000))
    assert said_beside(done) == "; 7 MB in a process at most; 1 parts, 1,000 rows of an earlier build"
    assert said_beside(replace(done, parts_kept=0, taken=(2, 4_000_000))) == (
        "; 7 MB in a process at most; 4 MB for a part"
    )
    assert said_beside(IndexProgress("x", 2, 0, 10, 0)) == ""


def test_what_a_part_takes_is_told_beside_what_its_process_held_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_tasks, "_least", {})
    held = bytearray(100 * MIB)
    held[::4096] = b"x" * len(held[::4096])
    part = replace(plan(UNLIMITED).parts[0], rows=50 * MIB)
    built = build_part(SpillingBuilder(), part, UNLIMITED)
    assert 45 * MIB < built.memory_taken < 100 * MIB < built.base_memory < built.peak_memory
    assert replace(built, base_memory=0).memory_taken == 0, "unknown"


def test_what_an_earlier_part_left_is_no_base_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_tasks, "_least", {os.getpid(): MIB})
    built = build_part(SpillingBuilder(), replace(plan(UNLIMITED).parts[0], rows=MIB), UNLIMITED)
    assert built.base_memory == MIB


def test_variables_that_a_builder_needs_are_there_while_it_builds() -> None:
    part = plan(UNLIMITED).parts[0]
    assert build_part(EnvironmentBuilder(), part, UNLIMITED).settings == "few few"
    assert "LAKETIER_TEST_READS" not in os.environ


def test_a_builder_without_limits_refuses_them() -> None:
    assert DyingBuilder().within(IndexResources(workers=2, spill="/x"))
    for resources in (IndexResources(memory=MIB), IndexResources(partition_size=MIB)):
        with pytest.raises(FeatureNotSupported, match="of an index build"):
            DyingBuilder().within(resources)


@pytest.mark.parametrize(
    ("text", "size"), [("512 MiB", 512 * MIB), ("1.5GB", 1_500_000_000), (7, 7), ("16777216", 16 * MIB)]
)
def test_sizes(text: object, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", 0, True, "0", "1 XB", None])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="write a size"):
        size_of(text)


def test_a_file_gives_them() -> None:
    said = {"memory": "512 MiB", "partition-size": "64 MiB", "workers": 2, "spill": "/fast", "kind": "inverted"}
    section = IndexSection.model_validate({"column": "text", **said})
    assert policy_of(section).resources == IndexResources(2, 512 * MIB, 64 * MIB, "/fast")
    assert policy_of(IndexSection.model_validate({"column": "text", "kind": "btree"})).resources == UNLIMITED
