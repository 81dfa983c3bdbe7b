"""The folders and the file names of a format of files and manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from laketier.kit.confine import confined
from laketier.kit.staged import AttemptOf
from laketier.spi.errors import OutsideTable

Details = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class ManifestLayout:
    """The names below a table's folder. Pure functions of relative paths with ``/``; nothing here touches the disk.

    ``format``: the format's identifier; ``table.json`` has it, and a table of another format is refused. ``folder``:
    where ``table.json`` and the manifests lie. Choose a name that no other format has, and that readers of the data
    files pass over. ``attempt_of``: the attempt that staged the file of a path, None for a file that no writer of the
    format stages under such a name. ``staging``: the folder for staged files, which is made with the table; empty for
    formats whose files are staged where they stay. ``others``: further folders of the format's, which a new table may
    find. ``staged_as``: where the data file that a manifest names was staged; None where it was staged there.
    ``allowed``: whether a path is one of the format's data files, for formats that move what was staged; None for
    whatever ``attempt_of`` knows. ``details``: checks the `FileEntry.details` that a manifest has, and returns them;
    raises `KeyError`, `TypeError` or `ValueError`. ``adoptable``: whether a path may also be one of a file that lay
    there when the table was made of it, which has any name; None for a format that takes none. ``superseded``: the
    folder to which a format moves files that commits take away, empty for one that moves none; ``superseded_as``: where
    there such a file goes; ``was_superseded``: whether a path there is one that the format gave.
    """

    format: str
    folder: str
    attempt_of: AttemptOf
    staging: str = ""
    others: tuple[str, ...] = ()
    staged_as: Callable[[str], str] | None = None
    allowed: Callable[[str], bool] | None = None
    details: Details = dict
    adoptable: Callable[[str], bool] | None = None
    superseded: str = ""
    superseded_as: Callable[[str], str] | None = None
    was_superseded: Callable[[str], bool] | None = None

    @property
    def table_file(self) -> str:
        """The file that creates the table when it is created."""
        return f"{self.folder}/table.json"

    @property
    def own_folders(self) -> frozenset[str]:
        """The folders that belong to the format, with all their files."""
        return frozenset(folder for folder in (self.folder, self.staging, *self.others) if folder)

    def staged_path(self, path: str) -> str:
        """Where the data file ``path`` of a manifest was staged."""
        return path if self.staged_as is None else self.staged_as(path)

    def data_path(self, path: str, *, where: str, adopted: bool = False) -> str:
        """Return ``path`` if it can be a data file. ``adopted``: of a table that was made of files that lay there.
        Raises `OutsideTable`, also for the table's own documents: they are never moved or deleted as data files."""
        checked = confined(path, where=where)
        allowed = self.attempt_of(checked) is not None if self.allowed is None else self.allowed(checked)
        if adopted and self.adoptable is not None:
            allowed = allowed or self.adoptable(checked)
        if not allowed:
            raise OutsideTable(
                f"{path!r} is not the path of a data file of this format, and was not touched", where=where
            )
        return path
