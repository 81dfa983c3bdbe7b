"""Indexes of a dataset: planned by fragments, built elsewhere, and published as segments in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from laketier.kit import failpoint
from laketier.spi import (
    BuiltIndexPart,
    CommitError,
    ConfigError,
    Conflict,
    Feature,
    FeatureNotSupported,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexSpec,
    LakeIndexer,
    TableChanged,
    check_built,
    check_index_options,
)
from laketier_lance.dataset import LANCE_ERRORS, open_dataset, reason
from laketier_lance.durable import make_durable
from laketier_lance.features import FORMAT
from laketier_lance.index_builder import LANCE_KINDS, LanceIndexBuilder, fragment_of, unit_rows, unpacked
from laketier_lance.location import refuse_links
from laketier_lance.options import LanceOptions
from laketier_lance.state import find_commit

if TYPE_CHECKING:
    from lance import LanceDataset

_ATTEMPTS = 20

_TEXT_OPTIONS: Mapping[str, type] = {
    "base_tokenizer": str,
    "language": str,
    "with_position": bool,
    "max_token_length": int,
    "lower_case": bool,
    "stem": bool,
    "remove_stop_words": bool,
    "ascii_folding": bool,
    "min_ngram_length": int,
    "max_ngram_length": int,
    "prefix_only": bool,
}
"""What a full-text index can be told. Without ``custom_stop_words``, as Lance does not keep them: who adds rows later
could not tell which they were. The other kinds take nothing."""

_KINDS = {name.replace("_", "").lower(): kind for kind, name in LANCE_KINDS.items()}


class LanceIndexer(LakeIndexer):
    """Driver only."""

    def __init__(self, location: str, options: LanceOptions) -> None:
        self._location = location
        self._options = options

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        if max_parts < 1:
            raise ConfigError(f"max_parts = {max_parts} is less than 1", where=self._location)
        if spec.kind not in LANCE_KINDS:
            raise FeatureNotSupported(
                Feature.INDEXING.value, format=FORMAT, reason=f"indexes of kind {spec.kind} are not built yet"
            )
        dataset = self._open()
        if spec.column not in dataset.schema.names:
            near = get_close_matches(spec.column, dataset.schema.names, n=1)
            fix = f"Did you mean {near[0]!r}?" if near else "Name a column of the table itself, not a nested one."
            raise ConfigError(f"there is no column {spec.column!r}", where=self._location, fix=fix)
        check_index_options(spec, _TEXT_OPTIONS if spec.kind is IndexKind.INVERTED else {})
        found = self._find(dataset, spec.name)
        self._check_name(found, spec, mode)
        units = unit_rows(dataset, spec.column)
        if found is not None and mode is IndexMode.APPEND:
            spec = self._as_it_is(found, spec)
            covered = _covered(found)
            units = {unit: rows for unit, rows in units.items() if fragment_of(unit) not in covered}
        elif not units:
            raise ConfigError("the table has no rows to index", where=self._location, fix="Write rows first.")
        plan_id = uuid.uuid4().hex
        builder = LanceIndexBuilder(plan_id, self._location, self._options, spec, int(dataset.version))
        return IndexPlan(plan_id, spec, mode, int(dataset.version), _balanced(units, max_parts), builder)

    def publish(self, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> IndexInfo:
        from lance.commit import CommitConflictError

        check_built(plan, built, where=self._location)
        why = ""
        for _ in range(_ATTEMPTS if plan.parts else 0):
            dataset = self._open()
            if self._is_landed(dataset, plan, built):
                return self._published(plan, int(dataset.version))
            segments: list[Any] = [unpacked(each, plan.spec.name, self._location) for each in built]
            failpoint("index.before_commit")
            try:
                dataset.commit_existing_index_segments(plan.spec.name, plan.spec.column, segments)
            except CommitConflictError as error:
                why = reason(error)
                continue
            except LANCE_ERRORS as error:
                raise CommitError(
                    "Lance could not commit the index", where=self._location, why=reason(error)
                ) from error
            failpoint("index.between_commit_and_fsync")
            return self._published(plan, int(dataset.version))
        if not plan.parts:
            return self._published(plan, plan.snapshot_id)
        raise Conflict("other commits came first each time", where=self._location, why=why, fix="Publish again.")

    def indexes(self) -> Sequence[IndexInfo]:
        dataset = self._open()
        rows = {fragment_of(unit): count for unit, count in unit_rows(dataset, dataset.schema.names[0]).items()}
        found = sorted(dataset.describe_indices(), key=lambda each: each.name)
        return [_info(each, rows, int(dataset.version)) for each in found]

    def drop(self, name: str) -> None:
        dataset = self._open()
        if self._find(dataset, name) is None:
            raise ConfigError(
                f"there is no index {name!r}", where=self._location, fix="`indexes()` lists those that are there."
            )
        try:
            dataset.drop_index(name)
        except LANCE_ERRORS as error:
            raise CommitError(f"Lance could not drop {name!r}", where=self._location, why=reason(error)) from error
        make_durable(self._location, int(dataset.version))

    def _open(self) -> LanceDataset:
        refuse_links(self._location)
        return open_dataset(self._location, self._options.storage_options())

    def _find(self, dataset: LanceDataset, name: str) -> Any:
        return next((each for each in dataset.describe_indices() if each.name == name), None)

    def _published(self, plan: IndexPlan, version: int) -> IndexInfo:
        # Whoever committed it may have been killed before it was durable, and the caller may acknowledge it.
        make_durable(self._location, version)
        found = next((each for each in self.indexes() if each.name == plan.spec.name), None)
        if found is None:
            raise TableChanged(f"index {plan.spec.name!r} was dropped meanwhile", where=self._location)
        return found

    def _check_name(self, found: Any, spec: IndexSpec, mode: IndexMode) -> None:
        if found is None:
            if mode is IndexMode.APPEND:
                raise ConfigError(f"there is no index {spec.name!r}", where=self._location, fix="Create it.")
            return
        if mode is IndexMode.CREATE:
            raise ConfigError(
                f"there is an index {spec.name!r} already",
                where=self._location,
                fix="Take another name, replace it (mode `replace`), or add the rows that it lacks (mode `append`).",
            )
        if list(found.field_names) != [spec.column]:
            raise ConfigError(
                f"index {spec.name!r} is of column {', '.join(found.field_names)}, not of {spec.column}",
                where=self._location,
                fix="Drop it first, or take another name.",
            )

    def _as_it_is(self, found: Any, spec: IndexSpec) -> IndexSpec:
        """The spec with all settings of the index that is there. Raises `ConfigError` where it asks for others: Lance
        would commit segments with another tokenizer, and answer with both."""
        kind = _KINDS.get(found.index_type.lower())
        details = dict(found.details or {})
        others = {key: value for key, value in spec.options.items() if value is not None and details.get(key) != value}
        if kind is not spec.kind or others:
            raise ConfigError(
                f"index {spec.name!r} was built with other settings",
                where=self._location,
                why=f"it is of kind {kind or found.index_type} with {details}",
                fix="Append without options, or replace the index.",
            )
        options = {key: value for key, value in details.items() if value is not None}
        return IndexSpec(spec.name, spec.column, spec.kind, options)

    def _is_landed(self, dataset: LanceDataset, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> bool:
        """Whether an earlier call published these parts. If not, they may be published onto ``dataset``: else it raises
        `TableChanged`, or `UnknownOutcome` where the commits since can't be read any more."""
        segments = {each.segment for each in built}
        found = self._find(dataset, plan.spec.name)
        if found is not None and segments <= {each.uuid for each in found.segments}:
            return True
        why = self._obstacle(dataset, found, plan)
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

    def _obstacle(self, dataset: LanceDataset, found: Any, plan: IndexPlan) -> str:
        if plan.spec.column not in dataset.schema.names:
            return f"column {plan.spec.column!r} is gone"
        planned = {unit for part in plan.parts for unit in part.units}
        fragments = {fragment_of(unit) for unit in planned}
        rewritten = sorted(map(fragment_of, planned - set(unit_rows(dataset, plan.spec.column))))
        if rewritten:
            return f"fragments {rewritten} were compacted, rewritten or deleted since version {plan.snapshot_id}"
        try:
            self._check_name(found, plan.spec, plan.mode)
            if found is None or plan.mode is not IndexMode.APPEND:
                left = _covered(found) - fragments if found is not None else set()
                live = {fragment.fragment_id for fragment in dataset.get_fragments()}
                return f"the index to replace covers fragments {sorted(left & live)}, too" if left & live else ""
            if dict(self._as_it_is(found, plan.spec).options) != dict(plan.spec.options):
                return "the index was replaced by one with other settings"
        except ConfigError as error:
            return str(error)
        both = sorted(_covered(found) & fragments)
        return f"the index covers fragments {both} already" if both else ""


def _made(transaction: Any) -> set[str]:
    return {each.uuid for each in getattr(transaction.operation, "new_indices", ())}


def _covered(found: Any) -> set[int]:
    return {int(each) for segment in found.segments for each in segment.fragment_ids}


def _balanced(units: Mapping[str, int], max_parts: int) -> tuple[IndexPart, ...]:
    """At most ``max_parts`` runs of neighbours, the largest of which has as few rows as can be. Neighbours, as Lance
    compacts only fragments side by side that are in the same segments. Rows, as Lance tells no bytes of a column.
    ``units`` are in the order of the dataset, which is not that of their ids after a compaction."""
    ordered = list(units.items())
    if not ordered:
        return ()
    least, most = max(rows for _, rows in ordered), sum(rows for _, rows in ordered)
    while least < most:
        middle = (least + most) // 2
        if len(_runs(ordered, middle)) <= max_parts:
            most = middle
        else:
            least = middle + 1
    runs = _runs(ordered, least)
    return tuple(
        IndexPart(number, tuple(unit for unit, _ in run), sum(rows for _, rows in run))
        for number, run in enumerate(runs)
    )


def _runs(ordered: Sequence[tuple[str, int]], most: int) -> list[list[tuple[str, int]]]:
    """Runs of neighbours, each filled up to ``most`` rows. None is empty."""
    runs: list[list[tuple[str, int]]] = [[]]
    filled = 0
    for unit, rows in ordered:
        if runs[-1] and filled + rows > most:
            runs.append([])
            filled = 0
        runs[-1].append((unit, rows))
        filled += rows
    return runs


def _info(found: Any, rows: Mapping[int, int], version: int) -> IndexInfo:
    covered = _covered(found)
    return IndexInfo(
        name=found.name,
        column=",".join(found.field_names),
        kind=str(_KINDS.get(found.index_type.lower(), found.index_type)),
        options={key: value for key, value in (found.details or {}).items() if value is not None},
        segments=tuple(sorted(segment.uuid for segment in found.segments)),
        rows_indexed=sum(count for each, count in rows.items() if each in covered),
        rows_not_indexed=sum(count for each, count in rows.items() if each not in covered),
        snapshot_id=version,
        bytes=found.total_size_bytes,
    )
