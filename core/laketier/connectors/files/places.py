"""Which folders the files of a table were seen in: a folder that lacks files may be another one than they lie in.

While a disk is not mounted, the folder that it is mounted at is there all the same, and empty, or holds what was
written there meanwhile. Files that nobody deleted would count as deleted, and be passed over where the user allows it.
A folder is told from another one by its number on its disk.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from laketier.connectors.files.files import Numbers
from laketier.connectors.files.segment import VERSION

log = logging.getLogger(__name__)

_FILE = "folders.json"
_MOST_PLACES = 64
_MOST_FOLDERS = 16
"""Hosts may see one folder under several numbers, as a file system in user space gives them anew with each mount."""


@dataclass(frozen=True)
class Place:
    """The files from ordinal ``since`` on, until the next place. ``folders``: by number, those they were seen in."""

    since: int
    folders: tuple[int, ...]

    def seen_in(self, folder: int) -> Place:
        if folder in self.folders:
            return self
        return replace(self, folders=(*self.folders, folder)[-_MOST_FOLDERS:])


@dataclass(frozen=True)
class Places:
    """Where the files of a table were seen, by their ordinals. Of files that come before all places nothing is known.
    Picklable."""

    places: tuple[Place, ...] = ()
    file: str | None = None
    """The document. To delete it tells that the files which are not there were deleted."""
    gone: int = 0
    """Files before this one were deleted: the folder that they were seen in was there, without them."""

    def seen(self, folder: int, there: Numbers) -> Places:
        """Files of the ordinals ``there`` are in ``folder``."""
        if not self.places:
            return replace(self, places=(Place(0, (folder,)),)) if len(there) else self
        at_places = np.unique(np.searchsorted([place.since for place in self.places], there, side="right") - 1).tolist()
        every = enumerate(self.places)
        return replace(self, places=tuple(place.seen_in(folder) if at in at_places else place for at, place in every))

    def taking(self, folder: int, first: int) -> Places:
        """Files from the ordinal ``first`` on are taken from ``folder``."""
        # A place that begins there has no files: who noted it was killed before they were taken, or came too late.
        filled = tuple(place for place in self.places if place.since < first)
        if filled and folder in filled[-1].folders:
            return replace(self, places=filled)
        return replace(self, places=(*filled, Place(first, (folder,)))[-_MOST_PLACES:])

    def first_elsewhere(self, folder: int) -> int | None:
        """The first file that was never seen in ``folder``. None where there is none."""
        return next((place.since for place in self.places if folder not in place.folders), None)

    def are_elsewhere(self, folder: int, ordinals: Iterable[int]) -> bool:
        """Whether one of these files was seen in another folder, and never in this one."""
        bounds = [place.since for place in self.places]
        at_places = {int(np.searchsorted(bounds, ordinal, side="right")) - 1 for ordinal in ordinals}
        return any(at >= 0 and folder not in self.places[at].folders for at in at_places)

    @classmethod
    def of(cls, ledger: Path) -> Places:
        """What is known. Nothing where the document is not there, or can't be read."""
        file = ledger / _FILE
        try:
            document = json.loads(file.read_bytes())
            places = tuple(Place(int(since), tuple(map(int, folders))) for since, folders in document["places"])
            gone = int(document.get("gone", 0))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, KeyError) as error:
            log.warning("%s can't be read, and is made anew: %s", file, error)
            return cls()
        return cls(places, str(file), gone)

    @classmethod
    def noted(cls, ledger: Path, folder: int, there: Numbers, first_new: int | None) -> Places:
        """What is known once ``folder`` was listed: files of the ordinals ``there`` are in it, and those from
        ``first_new`` on, if any, are about to be taken from it. Durable then when it returns."""
        known = cls.of(ledger)
        places = known.seen(folder, there)
        if first_new is None:
            return places.kept(ledger, known)
        places = places.taking(folder, first_new)
        return places if places == known else places.written(ledger / _FILE)

    def without(self, ledger: Path, earliest: int) -> Places:
        """What is known once the files before ``earliest``, and no more, were found to be deleted."""
        if not self.places or self.gone == earliest:
            return self
        known = self.of(ledger)  # another driver may have noted a place meanwhile
        return replace(known, gone=earliest).kept(ledger, known)

    def kept(self, ledger: Path, known: Places) -> Places:
        """Replace the document, if it holds less. Who takes no files may be a reader, who can't."""
        if self == known:
            return self
        file = ledger / _FILE
        try:
            return self.written(file)
        except OSError as error:
            log.debug("%s was not written: %s", file, error)
            return self

    def written(self, file: Path) -> Places:
        """Replace the document. Of two drivers that write at once one is heard; the other looks again."""
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
        places = [[place.since, list(place.folders)] for place in self.places]
        document = {"version": VERSION, "places": places, "gone": self.gone}
        try:
            with open(temporary, "xb") as handle:
                handle.write(json.dumps(document).encode())
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
        return replace(self, file=str(file))
