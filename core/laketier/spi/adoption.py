"""Tables of files that lie there. A capability that a format may add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from laketier.spi.table import TableInfo, TablePath


@dataclass(frozen=True, kw_only=True)
class AdoptedTable:
    """A table that was made of files that lie there.

    Attributes:
        table: The table.
        files: The number of its files.
        rows: The number of their rows.
        bytes: Their size.
        left_out: Other files of the folder, and why they are none of the table's.
        told: What its users have to know of it, as sentences.
        made: Whether this call made it. False where it was there already.
    """

    table: TableInfo
    files: int
    rows: int
    bytes: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    made: bool = True


class LakeAdoption(ABC):
    """Makes tables of files where these lie, without writing or moving any of them. Made by `LakeStorage.adoption`, for
    a format with `Feature.ADOPTION`. Driver only. Files of which a table was made are the table's from then on: an
    expiry deletes those that no snapshot needs any more. What else others put into the folder stays theirs: no
    maintenance deletes it."""

    @abstractmethod
    def adopt(
        self,
        path: TablePath,
        *,
        partitions: bool = False,
        types: Mapping[str, pa.DataType] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> AdoptedTable:
        """Make a table of the files in its folder: all of it, or nothing. Idempotent.

        Args:
            path: The name of the table, whose folder holds the files.
            partitions: Whether folders named ``column=value`` are the table's partitions.
            types: Types of columns whose files disagree.
            on_progress: Called with the number of files that were looked at, and of all.

        Returns:
            The table.

        Raises:
            TableNotFound: There is no such folder.
            IncompatibleTable: The folder is a table already, of whatever format, or changes while it is looked at. Of
                an earlier call, or of another process meanwhile: one that was asked for with other ``partitions`` or
                ``types``.
            IncompatibleData: The files can't be read as one table, or there are none.
            OutsideTable: A symbolic link leads to other files.
        """

    @abstractmethod
    def rebuild(
        self,
        path: TablePath,
        *,
        primary_key: tuple[str, ...] = (),
        types: Mapping[str, pa.DataType] | None = None,
        leave_staged: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> AdoptedTable:
        """Make the metadata of a table again that was deleted or damaged. Where watermarks are lost with it, each
        pipeline is refused (`RolledBack`) until it is adopted or forgotten.

        Args:
            path: The name of the table.
            primary_key: The primary key, where no metadata is left that tells it.
            types: Types of columns that neither metadata nor files tell.
            leave_staged: Whether to go on although files are staged, of which some may be published.
            on_progress: Called with the number of files that were looked at, and of all.

        Returns:
            The table.

        Raises:
            TableNotFound: There is no such table, and nothing left of one.
            IncompatibleTable: The table is whole, files are staged, or files change while they are looked at.
            IncompatibleData: The files can't be read as one table.
        """
