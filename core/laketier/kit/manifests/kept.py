"""Large documents that this process has read, for as long as their files are what they were.

A manifest, and a rollup, never changes once it has its name. Those of a table with many files are large: to decode one
takes most of the time of a commit, and each commit needs it again. (A table that was made of 10,000 files has them, and
its columns, in one manifest.) So what was decoded is kept with what tells its file from any other: inode, size and time
of change. Each use looks at the file first. So a document that is gone, was put back or was written by somebody else is
read again, and this answers what reading would. Which manifest is the newest is never taken from here.

Only files on a disk are kept: elsewhere the look is a request, as reading is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from laketier.kit.many_objects import making_many_objects
from laketier.kit.table_store import TableStore

LARGE = 1 << 16
"""Smaller documents are read again: that takes hardly longer than the look."""
MOST_BYTES = 1 << 25
"""So many bytes of documents are kept at most; as objects they take several times as much. One that is larger than this
is kept alone."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Kept:
    identity: str
    size: int
    built: Any


@dataclass
class KeptDocuments:
    """What was made of documents, by store, name and what it is. Safe in threads. The objects are shared: nobody
    changes them."""

    most_bytes: int = MOST_BYTES
    _entries: OrderedDict[tuple[str, str, str], _Kept] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bytes: int = 0

    def get(self, store: TableStore, name: str, kind: str, build: Callable[[bytes], T]) -> T:
        """What ``build`` makes of the document ``name``, as ``kind``. Raises what ``build`` does, and
        `FileNotFoundError`."""
        if store.folder is None:
            return build(store.read(name))
        identity = store.identity(name)  # before it is read, so what is read is that, or newer
        key = (store.root, name, kind)
        with self._lock:
            kept = self._entries.get(key)
            if kept is not None and kept.identity == identity:
                self._entries.move_to_end(key)
                found: T = kept.built
                return found
        data = store.read(name)
        with making_many_objects() if len(data) >= LARGE else nullcontext():
            built = build(data)
        if identity is not None and len(data) >= LARGE:
            self._keep(key, _Kept(identity, len(data), built))
        return built

    def _keep(self, key: tuple[str, str, str], kept: _Kept) -> None:
        with self._lock:
            before = self._entries.pop(key, None)
            self._entries[key] = kept
            self._bytes += kept.size - (0 if before is None else before.size)
            while self._bytes > self.most_bytes and len(self._entries) > 1:
                _, gone = self._entries.popitem(last=False)
                self._bytes -= gone.size


DOCUMENTS = KeptDocuments()
"""Those of this process."""
