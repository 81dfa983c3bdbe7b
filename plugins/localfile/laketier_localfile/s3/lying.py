"""Files that lie below a prefix of a bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from laketier.spi import TableNotFound
from laketier_localfile.layout import LAYOUT, LOST, MANIFESTS, STAGED_SUFFIX, attempt_of, superseded_path
from laketier_localfile.lying import (
    Identity,
    LyingFiles,
    LyingPlace,
    had_rows,
    kind_of,
    mark_of,
    refuse_table,
    within_table,
)
from laketier_localfile.s3.store import S3Store

_HEAD = "/head.json"
_TABLE = LAYOUT.table_file.rpartition("/")[2]


@dataclass(frozen=True)
class BucketPlace(LyingPlace):
    """A `LyingPlace`. Objects are known by size, date and tag. A read may be several requests, and the object another
    one meanwhile; who looks at files lists them before and after."""

    bucket: S3Store

    @property
    def store(self) -> S3Store:
        return self.bucket

    def is_there(self) -> bool:
        return next(self.bucket.objects(), None) is not None

    def files(self) -> LyingFiles:
        found = LyingFiles({}, {})
        inner: dict[str, set[str]] = defaultdict(set)
        files: dict[str, set[str]] = defaultdict(set)
        for each in self.bucket.objects():
            *folders, name = each.path.split("/")
            folder = ""
            for step in folders:
                inner[folder].add(step)
                folder = f"{folder}/{step}" if folder else step
                if step.startswith(("_", ".")):
                    found.tell_hidden(folder)
                    break
            else:
                files[folder].add(name)
                if not name.startswith(("_", ".")):
                    found.add(each.path, each.identity, where=self.where)
        if not inner and not files:
            raise TableNotFound("there is no such folder", where=self.where, why="no key begins so")
        for folder in sorted(inner.keys() | files.keys()):
            refuse_table(self.where, folder, files[folder], inner[folder])
        return found

    def opened(
        self, path: str, known: Identity, *, durable: bool, whole: bool
    ) -> AbstractContextManager[pa.NativeFile]:
        return self.reopened(path, whole=whole)

    def reopened(self, path: str, *, whole: bool) -> AbstractContextManager[pa.NativeFile]:
        found: AbstractContextManager[pa.NativeFile] = self.bucket.fetch(path) if whole else self.bucket.open(path)
        return found

    def sync(self, folders: Iterable[str]) -> None:
        """What is listed is durable."""

    def refuse_unfit(self) -> None:
        """Any prefix will do."""

    def refuse_within_table(self) -> None:
        above = self.bucket.prefix.split("/")[:-1]
        for depth in range(len(above), -1, -1):
            folder = S3Store(self.bucket.bucket, "/".join(above[:depth]), self.bucket.storage)
            mark = mark_of(folder.directly_in)
            if mark is not None:
                raise within_table(self.where, folder.root, kind_of(mark))

    def left_of_table(self) -> str | None:
        """By the first keys: in a bucket there are no folders without files, so the names of files have to tell."""
        manifests = list(self.bucket.objects(MANIFESTS))
        for each in manifests:
            if LOST in each.path:
                return each.path
        for each in manifests:
            if each.path.endswith(_HEAD) and had_rows(self.bucket, each.path.removesuffix(_HEAD)):
                return each.path
        for each in next(self.bucket.pages(), []):
            if attempt_of(each.path) is not None and not each.path.endswith(STAGED_SUFFIX):
                return each.path
        return None

    def end_drop(self) -> bool:
        if self.left_of_table() is None:
            return False
        self.bucket.delete_rest(MANIFESTS, LAYOUT.table_file)
        return True

    def superseded(self, lying: LyingFiles) -> Collection[str]:
        """A name is used once, so a copy there is of the same file."""
        there = {each.path for each in self.bucket.objects(LAYOUT.others[0])}
        return [path for path in lying.files if superseded_path(path) in there]

    def names(self, folder: str) -> list[str]:
        cut = len(folder) + 1
        return sorted({each.path[cut:].partition("/")[0] for each in self.bucket.objects(folder)})

    def move_aside(self, names: Iterable[str]) -> None:
        """Copies, and then deletes. ``table.json`` goes first: whoever publishes looks for it after each commit, and is
        refused from then on. Killed in between, it leaves some of both, and is run again."""
        taken = set(self.names(MANIFESTS))
        for name in sorted(names, key=lambda name: name != _TABLE):
            target, number = f"{name}{LOST}", 0
            while target in taken:
                number += 1
                target = f"{name}.{number}{LOST}"
            self._move(f"{MANIFESTS}/{name}", f"{MANIFESTS}/{target}")

    def _move(self, place: str, target: str) -> None:
        """An object, or all below a folder."""
        is_file = place == LAYOUT.table_file
        paths = [place] if is_file else [each.path for each in self.bucket.objects(place)]
        self.bucket.at_once(lambda path: self.bucket.copy(path, f"{target}{path[len(place) :]}"), paths)
        self.bucket.delete_all(paths)
