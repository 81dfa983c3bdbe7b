"""What a task tells of the segment that it left, in the two texts that a result of any format has: the settings of its
build, and what the commit needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from laketier.spi import DataclassSerializer, SerializationError

if TYPE_CHECKING:
    from lance.dataset import Index

_VERSION = 1


class _Text:
    """A frozen dataclass as text, equal for equal values."""

    @classmethod
    def read(cls, text: str, where: str | None = None) -> Self:
        """Raises `SerializationError` for what is not of its types. ``where``: the table."""
        try:
            return DataclassSerializer(cls, _VERSION).deserialize(_VERSION, text.encode())
        except SerializationError as error:
            raise SerializationError(
                "a task's result can't be read",
                where=where,
                why=str(error),
                fix="Run the same laketier and plugin versions on the driver and on all executors, and build again.",
            ) from error

    def text(self) -> str:
        return DataclassSerializer(type(self), _VERSION).serialize(self).decode()


@dataclass(frozen=True)
class BuiltSettings(_Text):
    """``model``: the digest of what the parts of an index of vectors share, empty for others. ``details``: what Lance
    keeps of the settings, in a form of its own, with the name of the form."""

    kind: str
    column: str
    options: Mapping[str, Any]
    model: str = ""
    details: tuple[str, bytes] = ("", b"")


@dataclass(frozen=True)
class BuiltSegment(_Text):
    """A finished segment, less what its result tells of it anyway.

    Attributes:
        fields: The ids of its columns.
        fragments: The fragments that it covers.
        index_version: The version of Lance's files of such an index.
        details: What Lance keeps of its settings, with the name of the form.
        files: The files in its folder, and their bytes.
        deleted: Fragments, each with the file of the rows that were deleted from it before the segment was built, which
            lacks these rows.
    """

    fields: tuple[int, ...]
    fragments: tuple[int, ...]
    index_version: int
    details: tuple[str, bytes]
    files: tuple[tuple[str, int], ...]
    deleted: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, segment: Index, deleted: Iterable[tuple[int, str]]) -> Self:
        assert segment.index_details is not None, "Lance tells them of what it has built"
        assert segment.files is not None, "Lance tells them of what it has built"
        return cls(
            fields=tuple(segment.fields),
            fragments=tuple(sorted(segment.fragment_ids)),
            index_version=segment.index_version,
            details=segment.index_details,
            files=tuple((file.path, file.size_bytes) for file in segment.files),
            deleted=tuple(deleted),
        )
