"""Building one part of an index, on an executor: a segment of whole fragments, finished and on the device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.looks import is_file
from laketier.spi import (
    UNLIMITED,
    BuiltIndexPart,
    IndexKind,
    IndexPart,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    OutsideTable,
    Refused,
    TableChanged,
    TableError,
)
from laketier_lance.dataset import lance_errors, open_dataset, reason
from laketier_lance.index_folders import INDICES, SEGMENT_FILE, SEGMENT_ID
from laketier_lance.index_record import write_record
from laketier_lance.index_resources import check_resources, pooled, text_limits, variables
from laketier_lance.index_results import BuiltSegment, BuiltSettings
from laketier_lance.index_settings import LANCE_KINDS, TRAINING, has_codebook, is_vector
from laketier_lance.index_units import deletions, fragment_of, unit_rows
from laketier_lance.location import local_path, refuse_links
from laketier_lance.options import LanceOptions
from laketier_lance.vector_model import VectorModel, model_of, train
from laketier_lance.wire import fields

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index

_HINTS = 9  # of the message VectorIndexDetails


@dataclass(frozen=True)
class BoundedIndexBuilder(LakeIndexBuilder):
    """The limits of a build or a merge. Plain data, picklable. Lance is imported in the task's own process."""

    plan_id: str
    location: str
    options: LanceOptions
    spec: IndexSpec
    snapshot_id: int
    resources: IndexResources = UNLIMITED

    def within(self, resources: IndexResources) -> Self:
        check_resources(self.spec, resources)
        return replace(self, resources=resources)

    @property
    def environment(self) -> Mapping[str, str]:
        return variables(self.spec.kind, self.resources)

    def warm_up(self) -> None:
        self.opened()

    def opened(self) -> LanceDataset:
        """The plan's snapshot. Executor. Raises as `open_dataset`, and `OutsideTable`."""
        refuse_links(self.location)
        return open_dataset(self.location, self.options.storage_options(), self.snapshot_id)


@dataclass(frozen=True)
class LanceIndexBuilder(BoundedIndexBuilder):
    """``model``: what the parts of an index of vectors share. It goes with the builder, and not as a file: so nothing
    can change or delete it meanwhile, and nothing is left of a build that failed."""

    model: VectorModel | None = None

    @property
    def needs_training(self) -> bool:
        return is_vector(self.spec.kind) and self.model is None

    def train(self) -> LanceIndexBuilder:
        if not self.needs_training:
            return self
        dataset = open_dataset(self.location, self.options.storage_options(), self.snapshot_id)
        codebook = has_codebook(self.spec.kind)
        return replace(self, model=train(dataset, self.spec.column, self.spec.options, codebook=codebook))

    def build(self, part: IndexPart) -> BuiltIndexPart:
        if self.needs_training:
            raise Refused(f"index {self.spec.name!r} has no model yet", where=self.location, fix="Train it first.")
        dataset = self.opened()
        there = unit_rows(dataset, self.spec.column)
        if not set(part.units) <= set(there):
            raise TableChanged(
                f"fragments of part {part.number} are not those of version {self.snapshot_id}",
                where=self.location,
                why="the table was dropped and made again",
                fix="Build the index again.",
            )
        try:
            fragments = [fragment_of(unit) for unit in part.units]
            segment = new_segment(dataset, self.spec, fragments, self.resources, self.model)
        except lance_errors(TypeError, NotImplementedError) as error:
            raise TableError(
                f"Lance could not build part {part.number} of index {self.spec.name!r}",
                where=self.location,
                why=reason(error),
                fix=_dictionary(self.spec),
            ) from error
        rows = sum(there[unit] for unit in part.units)
        if self.model is not None and self.model != model_of(
            self.location, self.options.storage_options(), segment.uuid
        ):
            raise TableError(
                f"Lance built part {part.number} of index {self.spec.name!r} with another model than it was given",
                where=self.location,
            )
        deleted = {each: file for each, file in deletions(dataset).items() if each in fragments}
        return built_part(
            self.plan_id, self.location, self.spec, self.snapshot_id, part, segment, rows, deleted, self.model
        )


def new_segment(
    dataset: LanceDataset,
    spec: IndexSpec,
    fragments: Collection[int],
    resources: IndexResources,
    model: VectorModel | None = None,
) -> Index:
    """A finished segment of some fragments, which no index has yet. Raises errors of Lance."""
    with pooled(spec.kind, resources):
        segment = dataset.create_index_uncommitted(
            spec.column,
            LANCE_KINDS[spec.kind],
            name=spec.name,
            replace=True,  # else it refuses a name that is in use; nothing is replaced before the commit
            fragment_ids=list(fragments),
            **_told(spec, resources, model),
        )
        if spec.kind is not IndexKind.INVERTED:
            return segment
        # A raw full-text segment lies in a staging folder, and the commit would finish it: on the driver, one after
        # the other, and behind our back, so that its files could not be on the device before the commit.
        return dataset.merge_existing_index_segments([segment])


def _told(spec: IndexSpec, resources: IndexResources, model: VectorModel | None) -> dict[str, Any]:
    options = {key: value for key, value in spec.options.items() if value is not None}
    options |= text_limits(spec.kind, resources)
    if model is None:
        return options
    return {key: value for key, value in options.items() if key not in TRAINING} | model.arguments()


_DICTIONARIES = {
    "lindera": "Use base_tokenizer = icu, which needs no files: no package ships a dictionary that this version of "
    "Lance reads. One of your own goes below LANCE_LANGUAGE_MODEL_HOME on each host.",
    "jieba": "Put its dictionary below LANCE_LANGUAGE_MODEL_HOME on each host, or use base_tokenizer = icu, which "
    "needs no files.",
}
"""What to do where a tokenizer whose name begins so found no dictionary, which Lance names by a folder alone."""


def _dictionary(spec: IndexSpec) -> str:
    name = str(spec.options.get("base_tokenizer"))
    return next((advice for begin, advice in _DICTIONARIES.items() if name.startswith(begin)), "")


def built_part(
    plan_id: str,
    location: str,
    spec: IndexSpec,
    snapshot_id: int,
    part: IndexPart,
    segment: Index,
    rows: int,
    deleted: Mapping[int, str],
    model: VectorModel | None = None,
) -> BuiltIndexPart:
    """What a task says of the segment that it left, once that is on the device, with a record beside it. ``deleted``:
    the files of rows that were deleted from its fragments before it was built."""
    told = BuiltSegment.of(segment, deleted.items())
    _sync(location, segment.uuid, (name for name, _ in told.files))
    shown = declared_settings(spec)
    if is_vector(spec.kind):
        kind, details = told.details
        shown = replace(shown, model="" if model is None else model.digest, details=(kind, _without_hints(details)))
    else:
        shown = replace(shown, details=told.details)
    built = BuiltIndexPart(
        plan_id=plan_id,
        part=part,
        segment=segment.uuid,
        snapshot_id=snapshot_id,
        settings=shown.text(),
        rows=rows,
        size=sum(size for _, size in told.files),
        payload=told.text(),
    )
    write_record(location, spec.name, built)
    return built


def declared_settings(spec: IndexSpec) -> BuiltSettings:
    """What of the settings of a part is known before it is built."""
    return BuiltSettings(spec.kind.value, spec.column, spec.options)


def _without_hints(details: bytes) -> bytes:
    """What Lance says of a segment of vectors, without its hints: they come in any order, and some are of the host."""
    return b"|".join(sorted(repr(each).encode() for each in fields(details) if each[0] != _HINTS))


def _sync(location: str, segment: str, files: Iterable[str]) -> None:
    local = local_path(location)
    if local is None:
        return
    folder = local / INDICES / segment
    for name in files:
        fsync_file(folder / name)
    for each in (folder, folder.parent, local):
        fsync_directory(each)


def unpacked(built: BuiltIndexPart, name: str, location: str, fragments: set[int]) -> Index:
    """The segment of a result, for the commit; what it says of itself is checked. ``fragments``: those that it has to
    cover. Raises `OutsideTable` for files that lead elsewhere, or are not those that the task left, `TableChanged` for
    other fragments, and `SerializationError`."""
    from lance.dataset import Index, IndexFile

    told = BuiltSegment.read(built.payload, location)
    covered = set(told.fragments)
    if covered != fragments:
        raise TableChanged(
            f"segment {built.segment!r} is not of the fragments that its part covers; nothing was published",
            where=location,
            why=f"they differ in {sorted(covered ^ fragments)}",
            fix="Build the index again.",
        )
    local = local_path(location)
    for path, size in told.files if SEGMENT_ID.fullmatch(built.segment) else (("", 0),):
        at = None if local is None else local / INDICES / built.segment / path
        if not SEGMENT_FILE.fullmatch(path) or (at is not None and (not is_file(at) or at.stat().st_size != size)):
            raise OutsideTable(
                f"{path!r} of segment {built.segment!r} is not the file that a task built; nothing was published",
                where=location,
                why="it was deleted or changed since, or something other than the builder made the result",
                fix="Build the index again.",
            )
    return Index(
        uuid=built.segment,
        name=name,
        fields=list(told.fields),
        dataset_version=built.snapshot_id,
        fragment_ids=fragments,  # type: ignore[arg-type] # a set is accepted, it says
        index_version=told.index_version,
        files=[IndexFile(path, size) for path, size in told.files],
        index_details=told.details,
    )
