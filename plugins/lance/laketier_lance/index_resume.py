"""Going on where the driver of an earlier build died: which of the parts that it left a build would make again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from laketier.spi import BuiltIndexPart, IndexMode, IndexPlan, SerializationError
from laketier_lance.index_builder import declared_settings
from laketier_lance.index_parts import balanced
from laketier_lance.index_record import PartRecord
from laketier_lance.index_results import BuiltSegment, BuiltSettings
from laketier_lance.index_settings import why_whole
from laketier_lance.index_units import fragment_of


def parts_that_fit(
    plan: IndexPlan,
    found: Iterable[PartRecord],
    deleted: Mapping[int, str],
    digest: str | None,
    max_parts: int,
) -> tuple[PartRecord, ...]:
    """The parts that a plan need not build: of the same index, column and settings, of fragments that are wanted, with
    the same deleted rows, and alike among each other. None of them twice.

    Args:
        plan: The plan.
        found: What is there.
        deleted: The file of deleted rows of each fragment of the plan's snapshot that has one.
        digest: That of the model that the index has. None: any, as the plan would train one.
        max_parts: The parts at most.

    Returns:
        Those that cover the most rows together.
    """
    wanted = {unit for part in plan.parts for unit in part.units}
    whole = {part.units for part in plan.parts}
    exact = plan.mode is IndexMode.MERGE or bool(why_whole(plan.spec))
    groups: dict[str, list[PartRecord]] = {}
    for each in found:
        built = each.built
        fits = built.part.units in whole if exact else wanted.issuperset(built.part.units)
        if each.name == plan.spec.name and built.part.units and fits and _is_alike(plan, each, deleted, digest):
            groups.setdefault(built.settings, []).append(each)
    chosen = (_apart(group, len(wanted), max_parts) for group in groups.values())
    return max(chosen, key=lambda parts: sum(each.built.rows for each in parts), default=())


def _is_alike(plan: IndexPlan, record: PartRecord, deleted: Mapping[int, str], digest: str | None) -> bool:
    try:
        said, told = BuiltSettings.read(record.built.settings), BuiltSegment.read(record.built.payload)
    except SerializationError:
        return False
    if replace(declared_settings(plan.spec), model=said.model, details=said.details) != said:
        return False
    if digest is not None and said.model != digest:
        return False
    if plan.mode is IndexMode.MERGE:  # its segments count rows that were deleted since, merged or not
        return True
    fragments = {fragment_of(unit) for unit in record.built.part.units}
    return dict(told.deleted) == {each: file for each, file in deleted.items() if each in fragments}


def _apart(group: Sequence[PartRecord], wanted: int, max_parts: int) -> tuple[PartRecord, ...]:
    """Parts that do not overlap, large ones first, so many that what is left has room."""
    taken: list[PartRecord] = []
    units: set[str] = set()
    for each in sorted(group, key=lambda each: (-each.built.rows, each.built.segment)):
        if units.isdisjoint(each.built.part.units):
            taken.append(each)
            units.update(each.built.part.units)
    if len(taken) > max_parts or (len(taken) == max_parts and len(units) < wanted):
        return tuple(taken[: max_parts - 1])
    return tuple(taken)


def without(plan: IndexPlan, kept: Sequence[BuiltIndexPart], rows: Mapping[str, int], max_parts: int) -> IndexPlan:
    """The plan, less what is kept. Its other parts stay as they are, unless they overlap with that.

    Args:
        plan: The plan.
        kept: The parts that are there.
        rows: The rows of each unit of the plan, in the order of the dataset. Not looked at for `IndexMode.MERGE`.
        max_parts: The parts at most, with those that are kept.
    """
    there = {unit for each in kept for unit in each.part.units}
    left = [part for part in plan.parts if not there.issuperset(part.units)]
    if plan.mode is not IndexMode.MERGE and any(not there.isdisjoint(part.units) for part in left):
        units = {unit for part in left for unit in part.units} - there
        most = max(1, max_parts - len(kept))
        left = list(balanced({unit: count for unit, count in rows.items() if unit in units}, most))
    return replace(plan, parts=tuple(left), kept=tuple(kept))
