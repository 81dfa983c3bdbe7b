"""Indexes of a dataset: planned by fragments, built elsewhere, and published as segments in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from laketier.kit import failpoint
from laketier.spi import (
    BuiltIndexPart,
    CommitError,
    ConfigError,
    Conflict,
    FeatureNotSupported,
    IndexInfo,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexSpec,
    LakeIndexer,
    TableChanged,
    UnknownOutcome,
    check_built,
    check_index_name,
)
from laketier_lance.dataset import indexes_of, lance_errors, open_dataset, reason
from laketier_lance.durable import make_durable
from laketier_lance.features import FORMAT
from laketier_lance.index_builder import LanceIndexBuilder, unpacked
from laketier_lance.index_columns import check_alone, check_column, check_mode, check_text_settings
from laketier_lance.index_info import covered_by, fragment_rows, index_info, segments_in_order
from laketier_lance.index_merger import LanceIndexMerger
from laketier_lance.index_parts import balanced, groups_to_merge
from laketier_lance.index_record import forget_records, records, taken_over
from laketier_lance.index_results import BuiltSegment, BuiltSettings
from laketier_lance.index_resume import parts_that_fit, without
from laketier_lance.index_settings import (
    LANCE_KINDS,
    NOT_BUILT,
    as_it_is,
    check_options,
    is_vector,
    kind_of,
    settled,
    why_whole,
)
from laketier_lance.index_units import deletions, fragment_of, unit_rows
from laketier_lance.location import refuse_links
from laketier_lance.options import LanceOptions
from laketier_lance.state import find_commit
from laketier_lance.vector_model import VectorModel, model_of

if TYPE_CHECKING:
    from lance import LanceDataset

_ATTEMPTS = 20


class LanceIndexer(LakeIndexer):
    """Driver only."""

    def __init__(self, location: str, options: LanceOptions) -> None:
        self._location = location
        self._options = options

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        dataset = self._open()
        spec, parts = self._parts(dataset, spec, max_parts, mode)
        plan_id, version = uuid.uuid4().hex, int(dataset.version)
        if mode is IndexMode.MERGE:
            merger = LanceIndexMerger(plan_id, self._location, self._options, spec, version)
            return IndexPlan(plan_id, spec, mode, version, parts, merger)
        model = self._model(self._find(dataset, spec.name)) if parts and mode is IndexMode.APPEND else None
        builder = LanceIndexBuilder(plan_id, self._location, self._options, spec, version, model=model)
        return IndexPlan(plan_id, spec, mode, version, parts, builder)

    def resume(self, plan: IndexPlan, max_parts: int) -> IndexPlan:
        dataset = self._open(plan.snapshot_id)
        published = {segment.uuid for each in indexes_of(dataset) for segment in each.segments}
        model = getattr(plan.builder, "model", None)
        fits = parts_that_fit(
            plan,
            (each for each in records(self._location) if each.built.segment not in published),
            deletions(dataset),
            None if model is None else model.digest,
            max_parts,
        )
        kept = [taken for each in fits if (taken := taken_over(self._location, each)) is not None]
        if not kept:
            return plan
        if is_vector(plan.spec.kind) and isinstance(plan.builder, LanceIndexBuilder):
            # All of them say that they have the same, and none is believed.
            found = [model_of(self._location, self._options.storage_options(), each.segment) for each in kept]
            said = BuiltSettings.read(kept[0].settings).model if model is None else model.digest
            kept = [each for each, one in zip(kept, found, strict=True) if one.digest == said]
            if not kept:
                return plan
            model = next(each for each in found if each.digest == said)
            plan = replace(plan, builder=replace(plan.builder, model=model))
        return without(plan, kept, unit_rows(dataset, plan.spec.column), max_parts)

    def replan(self, plan: IndexPlan, built: Sequence[BuiltIndexPart], max_parts: int) -> IndexPlan:
        anew = super().replan(plan, built, max_parts)
        if plan.mode is IndexMode.MERGE or anew.spec != plan.spec:
            return anew
        before, now = plan.builder, anew.builder
        if why_whole(plan.spec) or not isinstance(before, LanceIndexBuilder):
            return anew
        assert isinstance(now, LanceIndexBuilder)
        if plan.mode is not IndexMode.APPEND:  # what is kept was built with the model that the first plan trained
            anew = replace(anew, builder=replace(now, model=before.model))
        elif now.model != before.model:
            return anew
        wanted = {unit for part in anew.parts for unit in part.units}
        before_all = (*plan.kept, *built)
        back = self._brought_back(self._open(anew.snapshot_id), before_all)
        kept = tuple(
            each
            for each in before_all
            if wanted.issuperset(each.part.units) and back.isdisjoint(map(fragment_of, each.part.units))
        )
        left = wanted.difference(*(each.part.units for each in kept))
        units = unit_rows(self._open(anew.snapshot_id), anew.spec.column)
        parts = balanced({unit: rows for unit, rows in units.items() if unit in left}, max_parts)
        return replace(anew, parts=parts, kept=kept)

    def _parts(
        self, dataset: LanceDataset, spec: IndexSpec, max_parts: int, mode: IndexMode
    ) -> tuple[IndexSpec, tuple[IndexPart, ...]]:
        """The spec with all settings, and what there is to do."""
        if max_parts < 1:
            raise ConfigError(f"max_parts = {max_parts} is less than 1", where=self._location)
        if spec.kind not in LANCE_KINDS:
            raise FeatureNotSupported(
                f"an index of kind {spec.kind}", format=FORMAT, reason=NOT_BUILT.get(spec.kind, "Lance has none")
            )
        check_options(spec)
        found = self._find(dataset, spec.name)
        check_mode(found, spec, mode, self._location)
        check_column(dataset.schema, spec, self._location)
        if mode in (IndexMode.CREATE, IndexMode.REPLACE):
            if found is None:  # another tool's may have any
                check_index_name(spec, where=self._location)
            check_alone(indexes_of(dataset), spec, self._location)
            check_text_settings(spec, self._location)
        units = unit_rows(dataset, spec.column)
        if mode is IndexMode.MERGE:
            in_order = segments_in_order(found, fragment_rows(dataset))
            spec = as_it_is(dataset, found, spec, self._location)
            return self._addable(spec, groups_to_merge(in_order, max_parts))
        if mode is IndexMode.APPEND:
            there = covered_by(found)
            left = {unit: rows for unit, rows in units.items() if fragment_of(unit) not in there}
            return self._addable(as_it_is(dataset, found, spec, self._location), balanced(left, max_parts))
        if not units:
            raise ConfigError("the table has no rows to index", where=self._location, fix="Write rows first.")
        spec = settled(dataset, spec, self._location)
        return spec, balanced(units, 1 if why_whole(spec) else max_parts)

    def _addable(self, spec: IndexSpec, parts: tuple[IndexPart, ...]) -> tuple[IndexSpec, tuple[IndexPart, ...]]:
        why = why_whole(spec) if parts else ""
        if why:
            raise FeatureNotSupported(
                f"adding to index {spec.name!r} of kind {spec.kind}, or merging it",
                format=FORMAT,
                reason=why,
                fix="Build it anew: mode `replace`. Rows that are not in it are found all the same.",
            )
        return spec, parts

    def _model(self, found: Any) -> VectorModel | None:
        """The model of an index of vectors that is there. Raises `ConfigError` where its segments have several."""
        if not is_vector(kind_of(found)):
            return None
        storage = self._options.storage_options()
        models = {(each := model_of(self._location, storage, segment.uuid)).digest: each for segment in found.segments}
        if len(models) > 1:
            raise ConfigError(
                f"the segments of index {found.name!r} have {len(models)} models",
                where=self._location,
                why="another program built them",
                fix="Replace the index.",
            )
        return next(iter(models.values()))

    def publish(self, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> IndexInfo:
        from lance.commit import CommitConflictError

        check_built(plan, built, where=self._location)
        every = (*plan.kept, *built)
        if not every:
            return self._published(plan, plan.snapshot_id)
        why = ""
        for _ in range(_ATTEMPTS):
            dataset = self._open()
            found = self._find(dataset, plan.spec.name)
            if self._is_landed(dataset, found, plan, every):
                return self._published(plan, int(dataset.version), [each.segment for each in every])
            segments: list[Any] = [
                unpacked(each, plan.spec.name, self._location, self._fragments(each, plan, found)) for each in every
            ]
            failpoint("index.before_commit")
            try:
                dataset.commit_existing_index_segments(plan.spec.name, plan.spec.column, segments)
            except CommitConflictError as error:
                why = reason(error)
                continue
            except lance_errors() as error:
                raise CommitError(
                    "Lance could not commit the index", where=self._location, why=reason(error)
                ) from error
            failpoint("index.between_commit_and_fsync")
            return self._published(plan, int(dataset.version), [each.segment for each in every])
        raise Conflict("other commits came first each time", where=self._location, why=why, fix="Publish again.")

    def indexes(self) -> Sequence[IndexInfo]:
        dataset = self._open()
        while True:
            rows = fragment_rows(dataset)
            found = sorted(indexes_of(dataset), key=lambda each: each.name)
            told = [index_info(dataset, each, rows) for each in found]
            now = self._open() if any(each.damage is not None for each in told) else dataset
            if now.version == dataset.version:
                return told
            dataset = now  # the version was cleaned up while it was looked at; its files are not missed

    def drop(self, name: str) -> None:
        dataset = self._open()
        if self._find(dataset, name) is None:
            raise ConfigError(
                f"there is no index {name!r}", where=self._location, fix="`indexes()` lists those that are there."
            )
        try:
            dataset.drop_index(name)
        except lance_errors() as error:
            raise CommitError(f"Lance could not drop {name!r}", where=self._location, why=reason(error)) from error
        make_durable(self._location, int(dataset.version))

    def _open(self, version: int | None = None) -> LanceDataset:
        refuse_links(self._location)
        return open_dataset(self._location, self._options.storage_options(), version)

    def _fragments(self, built: BuiltIndexPart, plan: IndexPlan, found: Any) -> set[int]:
        """What a segment has to cover: the fragments of its part, or those of the segments that it merged."""
        if plan.mode is not IndexMode.MERGE:
            return {fragment_of(unit) for unit in built.part.units}
        return {
            int(each) for segment in found.segments if segment.uuid in built.part.units for each in segment.fragment_ids
        }

    def _find(self, dataset: LanceDataset, name: str) -> Any:
        return next((each for each in indexes_of(dataset) if each.name == name), None)

    def _published(self, plan: IndexPlan, version: int, segments: Sequence[str] = ()) -> IndexInfo:
        # Whoever committed it may have been killed before it was durable, and the caller may acknowledge it.
        make_durable(self._location, version)
        forget_records(self._location, segments)
        found = next((each for each in self.indexes() if each.name == plan.spec.name), None)
        if found is None:
            raise TableChanged(f"index {plan.spec.name!r} was dropped meanwhile", where=self._location)
        return found

    def _is_landed(self, dataset: LanceDataset, found: Any, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> bool:
        """Whether an earlier call published these parts. If not, they may be published onto ``dataset``: else it raises
        `TableChanged`, or `UnknownOutcome` where the commits since can't be read any more."""
        segments = {each.segment for each in built}
        if found is not None and segments <= {each.uuid for each in found.segments}:
            return True
        why = self._obstacle(dataset, found, plan, {unit for each in built for unit in each.part.units})
        back = () if why else sorted(self._brought_back(dataset, built))
        why = f"rows that were deleted from fragments {back} may be there again" if back else why
        if not why:
            return False
        # A compaction gives segments new ids, so it may have landed all the same.
        if find_commit(dataset, lambda since: _made(since) >= segments, after=plan.snapshot_id) is not None:
            return True
        raise TableChanged(
            f"index {plan.spec.name!r} does not fit the table any more; nothing was published",
            where=self._location,
            why=why,
            fix="Build the index again.",
        )

    def _brought_back(self, dataset: LanceDataset, built: Sequence[BuiltIndexPart]) -> set[int]:
        """The fragments whose deleted rows may be there again, as an older version was restored since they were built:
        the parts lack these rows, and a query through the index would not see them."""
        from lance import LanceOperation

        now = deletions(dataset)
        told = (BuiltSegment.read(each.payload, self._location) for each in built)
        before = {fragment: file for each in told for fragment, file in each.deleted}
        changed = {fragment for fragment, file in before.items() if now.get(fragment) != file}
        if not changed:
            return set()
        since = min(each.snapshot_id for each in built)
        try:
            restored = find_commit(dataset, lambda it: isinstance(it.operation, LanceOperation.Restore), after=since)
        except UnknownOutcome:  # versions were cleaned up meanwhile
            return changed
        return changed if restored is not None else set()

    def _obstacle(self, dataset: LanceDataset, found: Any, plan: IndexPlan, planned: set[str]) -> str:
        if plan.spec.column not in dataset.schema.names:
            return f"column {plan.spec.column!r} is gone"
        if plan.mode is IndexMode.MERGE:
            gone = planned - {each.uuid for each in found.segments} if found is not None else planned
            return f"{len(gone)} of the segments were merged, dropped or compacted since" if gone else ""
        fragments = {fragment_of(unit) for unit in planned}
        rewritten = sorted(map(fragment_of, planned - set(unit_rows(dataset, plan.spec.column))))
        if rewritten:
            return f"fragments {rewritten} were compacted, rewritten or deleted since version {plan.snapshot_id}"
        try:
            check_mode(found, plan.spec, plan.mode, self._location)
            if plan.mode is not IndexMode.APPEND:
                check_alone(indexes_of(dataset), plan.spec, self._location)
                left = covered_by(found) - fragments if found is not None else set()
                live = {fragment.fragment_id for fragment in dataset.get_fragments()}
                return f"the index to replace covers fragments {sorted(left & live)}, too" if left & live else ""
            if dict(as_it_is(dataset, found, plan.spec, self._location).options) != dict(plan.spec.options):
                return "the index was replaced by one with other settings"
            if self._model(found) != getattr(plan.builder, "model", None):
                return "the index was replaced by one with another model"
        except ConfigError as error:
            return str(error)
        both = sorted(covered_by(found) & fragments)
        return f"the index covers fragments {both} already" if both else ""


def _made(transaction: Any) -> set[str]:
    return {each.uuid for each in getattr(transaction.operation, "new_indices", ())}
