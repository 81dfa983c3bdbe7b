"""Requests to one process, for which the warehouse is on a mount that can only be read.

Namespaces of users would give it one, and are not there everywhere. So each call that such a mount refuses is refused.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laketier_conformance.children import Child
from laketier_conformance.interposed.disk import REMOVES, SYNC_ALL, SYNCS
from laketier_conformance.interposed.effects import Effect, change_of
from laketier_conformance.interposed.supervisor import Supervisor
from laketier_conformance.lake import Lake

_MAKES = ("mkdir", "mknod", "link", "symlink")


class ReadOnly:
    """``refused``: the first call of the last request that was refused, and whether it would have made something that
    no writer did. A database opens the file that it has to be written, and reads it, or its empty file of locks."""

    def __init__(self, child: Child, lake: Lake, folder: Path, written: Collection[str]) -> None:
        self._child, self._lake, self._written = child, lake, written
        self._folder = os.path.realpath(folder)
        self.first: dict[str, Any] = {}
        self.refused: tuple[Effect, bool] | None = None

    @classmethod
    @contextmanager
    def of(cls, child: Child, lake: Lake, folder: Path, written: Collection[str]) -> Iterator[ReadOnly]:
        """``folder``: where the warehouse is. ``written``: `paths_in` it, from before anybody only read."""
        mount = cls(child, lake, folder, written)
        with (
            tempfile.TemporaryDirectory(prefix="mount-") as place,
            Supervisor(mount.decide, Path(place, "s"), change_of) as by,
        ):
            mount.first = {"supervised": str(by.path)}
            try:
                yield mount
            finally:
                child.stop()

    def ask(self, lake: Lake, do: str, **request: Any) -> dict[str, Any]:
        """Make one request."""
        self.refused = None
        first, self.first = self.first, {}
        return self._child.ask(lake, do, **first, **request)

    def told(self) -> str:
        """For a message: the call that was refused."""
        return "nothing was refused" if self.refused is None else f"EROFS from {self.refused[0].below(self._folder)}"

    def decide(self, effect: Effect) -> int:
        """For `Supervisor`."""
        path = effect.on[-1] if effect.on else ""
        if effect.call in (*SYNCS, *SYNC_ALL) or not f"{path}/".startswith(f"{self._folder}/"):
            return 0
        there, makes = os.path.lexists(path), effect.call.startswith(_MAKES)
        if (there and makes) or (not there and effect.call in REMOVES):
            return 0  # what it ends in on any mount
        if self.refused is None:
            self.refused = effect, not there or makes or _in_full(path) not in self._written
        return errno.EROFS


def paths_in(folder: Path) -> frozenset[str]:
    """All that has a name below a folder."""
    found = os.walk(os.path.realpath(folder))
    return frozenset(os.path.join(at, name) for at, folders, files in found for name in (*folders, *files))


def _in_full(path: str) -> str:
    """Without links but for the last name, which may itself be one that leads nowhere."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
