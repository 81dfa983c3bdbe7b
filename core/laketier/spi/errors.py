"""Every error that crosses the SPI.

An error says *what* happened, *where*, *why*, and what to do next (*fix*). The message is made of these four parts,
so a command line or a log can also show them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laketier.spi.redaction import redacted
from laketier.spi.visible import visible


class LaketierError(Exception):
    """The base of all errors raised on purpose by laketier and its plugins.

    ``what`` is one clause that stands alone; ``where`` names the table, file or key; ``why`` the reason that is
    known; ``fix`` the next step, an imperative sentence. As text it shows control characters and hides the passwords of
    URLs, whatever library the parts came from. Picklable, so it survives the way from an executor.
    """

    def __init__(self, what: str, *, where: str | None = None, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
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
    """A setting is unknown, ill-typed, missing or in contradiction with another one."""


class PluginError(LaketierError):
    """A format plugin can't be used."""


class PluginNotFound(PluginError, LookupError):
    """No installed distribution offers the format."""


class PluginConflict(PluginError):
    """Two installed distributions offer the same format."""


class PluginBroken(PluginError):
    """The plugin is installed, but it, or something it needs, can't be imported or does not keep the contract."""


class SpiVersionMismatch(PluginError):
    """The plugin was written for another version of the SPI."""


class FeatureNotSupported(LaketierError):
    """The format declares that it can't do this. ``feature`` is the name of the `Feature`. ``format`` is None where
    whoever raises it does not know the name, as the base classes of the SPI don't: laketier adds it (`name_format`)."""

    def __init__(self, feature: str, *, format: str | None = None, reason: str, fix: str | None = None) -> None:
        super().__init__(f"{format or 'the format'} does not support {feature}", why=reason, fix=fix)
        self.feature = feature
        self.format = format
        self.reason = reason

    def name_format(self, format: str) -> None:
        """Say which format it is, where that is not said yet."""
        if self.format is None:
            self.format = format
            self.what = f"{format} does not support {self.feature}"
            self.args = (self.what,)


# -- tables and data ----------------------------------------------------------------------------------------------


class TableError(LaketierError):
    """Something about one table."""


class TableNotFound(TableError, LookupError):
    """The table does not exist."""


class IncompatibleTable(TableError):
    """A table of that name exists and differs from what was asked for, or a change does not fit it."""


class OffsetsExpired(TableError):
    """A part of the range that was to be read is not in the source any more. ``gone``: bucket → ranges (start, and end
    exclusive) that are all of what is missing; empty where the source can't tell, so that nobody may read around it."""

    def __init__(
        self, what: str, *, gone: Mapping[str, Sequence[tuple[int, int]]] | None = None, **parts: str | None
    ) -> None:
        super().__init__(what, **parts)
        self.gone = {} if gone is None else {bucket: tuple(ranges) for bucket, ranges in gone.items()}


class OffsetsRewritten(TableError):
    """What the source holds at offsets that it handed out has changed since, so a round can't be read again."""


class RowsChanged(TableError):
    """A commit took rows back, or changed them, where only commits that append can be read."""


class UnsupportedType(TableError, TypeError):
    """The format can't hold an Arrow type without changing values."""


class CorruptTable(TableError):
    """Stored metadata is damaged, or not of this format."""


class UnsafeTable(TableError):
    """The table's own settings would let the watermark be forgotten, so rounds can't be exactly once on it."""


class IncompatibleData(LaketierError):
    """A batch does not fit the table's schema."""


class SnapshotNotFound(TableError, LookupError):
    """The asked snapshot does not exist, or has expired."""


class StorageError(LaketierError):
    """The storage below refused: permissions, space, a missing mount. Whether trying again helps depends on ``why``."""


class SerializationError(LaketierError):
    """Bytes are of an unknown version, or damaged."""


# -- the atomic step ----------------------------------------------------------------------------------------------


class CommitError(LaketierError):
    """A commit did not end well."""


class Conflict(CommitError):
    """The attempt lost against another commit, and it is **certain** that nothing of it landed."""


class UnknownOutcome(CommitError):
    """Whether a commit landed could not be found out. Nothing was deleted. Running the same round again is safe."""


# -- refusals of the protocol: nothing was published -----------------------------------------------------------------


class Refused(LaketierError):
    """The round must not be published. Nothing of it is, or will be, visible."""


class Fenced(Refused):
    """Another driver with a newer lease has taken over."""


class Stale(Refused):
    """The table is already past this epoch."""


class Gap(Refused):
    """Epochs, or the source range, are missing between the table and this round."""


class TokenMismatch(Refused):
    """The epoch comes from another run (checkpoint), or read other input than the one already published."""


class WatermarkLost(Refused):
    """The table does not know the pipeline although this is not its first epoch."""


class RolledBack(Refused):
    """The snapshot that carried the watermark is no longer part of the table's history."""


class Overtaken(Refused):
    """The table moved on while rows were merged with an older snapshot. The next round merges them with the new one."""


class Collected(Refused):
    """The files were staged so long ago that orphan collection may have deleted them."""


class OutsideTable(Refused):
    """A path that should name a file of a table leads out of it: by its text, or through a symbolic link. Or it names a
    file that is not its sender's: one of the table's own, or of another attempt."""


class StagedFileLost(Refused, CommitError):
    """A staged file is gone, or is not the one that its writer left. Running the round again stages it anew."""


class TableChanged(Refused):
    """The table was recreated, or its schema or partitioning changed after the files were staged."""


class SchemaChanged(TableChanged):
    """It is the same table, and its schema or partitioning changed while a round ran. The next round has the new one,
    so running it again is all that is needed."""
