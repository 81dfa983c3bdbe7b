"""The files of a dataset by their paths, beside what Lance's own handle of it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance.file import LanceFileSession


def file_session(location: str, storage: dict[str, str]) -> LanceFileSession:
    """Paths are relative to ``location``, a folder or a place in a store."""
    from lance.file import LanceFileSession

    return LanceFileSession(location, storage)
