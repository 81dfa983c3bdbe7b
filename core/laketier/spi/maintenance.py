"""What a format may add so that tables stay tidy. Driver only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from laketier.spi.errors import FeatureNotSupported

COLLECTOR = "laketier-orphans"
"""The pipeline whose watermark says how far orphan collection has come. No user's may have this name."""


@dataclass(frozen=True, order=True)
class OrphanFile:
    """A file below a table that none of its snapshots needs.

    ``path`` is relative to the table's location, with ``/``. ``modified_at``: ms since the epoch, UTC, by the
    storage's clock. ``kind`` says what it was for: ``data``, or a word of the format's own (``manifest``, ``record``).
    ``attempt``: of a file that a `LakeWriter` staged, from its name. Such a file is deleted only when its attempt can't
    be published any more. None for all others, which a commit makes anew when it has to start over.
    """

    path: str
    bytes: int
    modified_at: int
    kind: str = "data"
    attempt: str | None = None


@dataclass(frozen=True)
class TableFinding:
    """Something in a table's metadata that other readers or writers stumble over, though rounds do not.

    ``what`` is one clause that stands alone, ``why`` how it comes about and what it does. ``fix`` is the next step
    where `LakeMaintenance.repair` can't mend it, and empty where it can.
    """

    what: str
    why: str
    fix: str = ""


class LakeMaintenance(ABC):
    """Made by `LakeStorage.maintenance`, for one table."""

    @abstractmethod
    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        """List what is unreferenced and older than ``modified_before`` (ms since the epoch, by the storage's clock).

        Looks at the table afresh. Unreferenced: no snapshot that can still be read needs it, nor does the newest
        commit to be rolled forward, nor do the format's own rules keep it (a tombstone within its retention). Left out
        is what the format does not know (a file of the user's), and whatever the format's own clean-up takes care of.
        A staged file of a live round is listed like any other: `laketier.maintenance.orphans` keeps the two apart.
        """

    @abstractmethod
    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        """Delete these, which `orphans` listed, and return those that are gone. A file that is gone already counts as
        gone; one that can't be deleted is logged and left out."""

    def findings(self) -> Sequence[TableFinding]:
        """Look at the table's metadata afresh for what is wrong with it, and change nothing."""
        return ()

    def repair(self) -> Sequence[TableFinding]:
        """Mend what `findings` has no ``fix`` for, in one atomic commit that keeps snapshots and watermarks, and return
        what is left. Raises `Conflict` when others came first each time."""
        raise FeatureNotSupported("repair", reason="there is nothing that it could mend")
