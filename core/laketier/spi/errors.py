"""The errors that cross the SPI.

An error says *what* happened, *where*, *why*, and what to do next (*fix*). The message consists of these four parts, so
a command line or a log can also show them separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laketier.spi.redaction import redacted
from laketier.spi.visible import plain, visible


class LaketierError(Exception):
    """The base of all errors that laketier and its plugins raise on purpose. Picklable, so it survives the way from an
    executor. Its text shows control characters and hides the passwords of URLs, whatever library the parts came from.

    Attributes:
        what: What happened: one clause that stands alone.
        where: The table, file or key.
        why: The reason, where it is known. Of a library's words what is `plain`.
        fix: The next step: an imperative sentence.
    """

    def __init__(self, what: str, *, where: str | None = None, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = plain(why) if isinstance(why, str) else why  # a plugin may give an error
        self.fix = fix

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.why:
            text = f"{text.rstrip('.')}, because {self.why}" if self.why else text
        if self.fix:
            text = f"{text.rstrip('.')}. {self.fix}"
        return visible(redacted(text))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(kind: type[LaketierError], args: tuple[Any, ...], state: dict[str, Any]) -> LaketierError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    error.args = args
    return error


# -- what a user configured, installed or asked for ---------------------------------------------------------------


class ConfigError(LaketierError, ValueError):
    """A setting is unknown, ill-typed, missing, or contradicts another one."""


class PluginError(LaketierError):
    """A plugin can't be used."""


class PluginNotFound(PluginError, LookupError):
    """No installed distribution offers the format."""


class PluginConflict(PluginError):
    """Two installed distributions offer the same format."""


class PluginBroken(PluginError):
    """The plugin is installed, but breaks the contract or can't be imported."""


class SpiVersionMismatch(PluginError):
    """The plugin was written for another version of the SPI."""


class FeatureNotSupported(LaketierError):
    """The format declares that it does not support a feature.

    Attributes:
        feature: The name of the `Feature`.
        format: The name of the format. None where the raising code does not know it, as in the base classes of the SPI;
            laketier adds it then (`name_format`).
        reason: Why the feature is not supported.
    """

    def __init__(self, feature: str, *, format: str | None = None, reason: str, fix: str | None = None) -> None:
        super().__init__(f"{format or 'the format'} does not support {feature}", why=reason, fix=fix)
        self.feature = feature
        self.format = format
        self.reason = reason

    def name_format(self, format: str) -> None:
        """Set the format's name, if the error has none yet.

        Args:
            format: The name.
        """
        if self.format is None:
            self.format = format
            self.what = f"{format} does not support {self.feature}"
            self.args = (self.what,)


# -- tables and data ----------------------------------------------------------------------------------------------


class TableError(LaketierError):
    """An error about one table."""


class TableNotFound(TableError, LookupError):
    """The table does not exist."""


class IncompatibleTable(TableError):
    """A table of that name exists and differs from the requested one, or a change does not fit it."""


class OffsetsExpired(TableError):
    """A part of the range to read is not in the source any more.

    Attributes:
        gone: All missing ranges (start, and end exclusive) of each bucket. Empty where the source can't list them: then
            no reader may skip them.
        again: Whether the rows are there all the same, for whoever asks for the bounds and plans again: the range was
            served from a snapshot, and a newer one has taken its place. Nothing was lost then, and nothing is skipped.
    """

    def __init__(
        self,
        what: str,
        *,
        gone: Mapping[str, Sequence[tuple[int, int]]] | None = None,
        again: bool = False,
        **parts: str | None,
    ) -> None:
        super().__init__(what, **parts)
        self.gone = {} if gone is None else {bucket: tuple(ranges) for bucket, ranges in gone.items()}
        self.again = again


class OffsetsRewritten(TableError):
    """The source has changed records at offsets that it had handed out, so a round can't be read again."""


class RowsChanged(TableError):
    """A commit deleted or changed rows, where only commits that append can be read."""


class UnsupportedType(TableError, TypeError):
    """The format can't hold an Arrow type without changing values."""


class CorruptTable(TableError):
    """Stored metadata is damaged, or not of this format."""


class UnsafeTable(TableError):
    """The table's own settings would let it forget the watermark, or its storage would, so rounds can't be exactly once
    on it."""


class IncompatibleData(LaketierError):
    """A batch does not fit the table's schema."""


class UnstorableRows(IncompatibleData):
    """Some rows have values that the table can't store, and a batch without them could be written. Raised by
    `LakeWriter.write` or `LakeWriter.complete`, for what a row's own values decide, whatever rows come with it and
    whoever writes it: never for a failure of a disk, a library or a catalog, nor for columns that do not fit. A service
    may take such rows aside (`on-bad-record`) and store the others."""


class SnapshotNotFound(TableError, LookupError):
    """The requested snapshot does not exist, or has expired."""


class StorageError(LaketierError):
    """The storage refused: permissions, space, a missing mount. ``why`` tells whether another try may help."""


class SerializationError(LaketierError):
    """Bytes are damaged, or of an unknown version."""


# -- the atomic step ----------------------------------------------------------------------------------------------


class CommitError(LaketierError):
    """A commit failed."""


class Conflict(CommitError):
    """Another commit came first, and it is **certain** that nothing of this attempt landed."""


class NotBegun(CommitError):
    """A step before a commit's effect failed, and it is **certain** that nothing of this attempt landed."""


class UnknownOutcome(CommitError):
    """It could not be found out whether a commit landed. Nothing was deleted. Running the same round again is safe."""


# -- refusals of the protocol: nothing was published -----------------------------------------------------------------


class Refused(LaketierError):
    """The round must not be published. Nothing of it is visible, or will be."""


class Fenced(Refused):
    """Another driver with a newer lease has taken over."""


class Stale(Refused):
    """The table is already past this epoch."""


class Gap(Refused):
    """Epochs, or a part of the source's range, are missing between the table and this round."""


class TokenMismatch(Refused):
    """The epoch belongs to another run (checkpoint), or read other input than the epoch that was published."""


class WatermarkLost(Refused):
    """The table does not know the pipeline, although this is not its first epoch."""


class RolledBack(Refused):
    """The snapshot that carried the watermark is no longer part of the table's history."""


class Overtaken(Refused):
    """Another commit changed the table while rows were merged with an older snapshot. The next round merges with the
    new one."""


class Collected(Refused):
    """The files were staged so long ago that orphan collection may have deleted them. Run the round again: it stages
    its files again."""


class OutsideTable(Refused):
    """A path that should name a file of a table leads out of it, by its text or through a symbolic link. Or it names a
    file of the table's own, or of another attempt."""


class StagedFileLost(Refused, CommitError):
    """A staged file is missing, or differs from the one that its writer left. Run the round again: it stages its files
    again."""


class TableChanged(Refused):
    """The table was recreated, or its schema or partitioning changed after the files were staged."""


class SchemaChanged(TableChanged):
    """The schema or the partitioning of the same table changed while a round ran. Running the round again is enough: it
    uses the new schema."""
