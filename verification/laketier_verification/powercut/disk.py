"""A disk as POSIX promises it and no better, after CrashMonkey (OSDI 2018) and ALICE (OSDI 2014).

- What was written to a file is durable after a sync of the file.
- A name, its removal and its move are durable after a sync of the directory.
- Until then each may have reached the disk or not, on its own and in any order; of a file's bytes also a part, or its
  length with other bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

from laketier_verification.powercut.trace import Op

Tree = dict[str, tuple[int, bytes] | None]
"""Path → a file's number and contents; None for a directory. Files of one number are one file with several names."""


@dataclass
class File:
    durable: bytes = b""
    now: bytes = b""


@dataclass
class Change:
    """A name that was given (``inode``) or removed (None), by the ``order``-th change of all. A move is two of them
    with one number: it is done or not."""

    name: str
    inode: int | None
    order: int
    is_move: bool = False


@dataclass
class Folder:
    durable: dict[str, int] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def now(self, chosen: Callable[[Change], bool] = lambda _: True) -> dict[str, int]:
        names = dict(self.durable)
        for change in filter(chosen, self.pending):
            if change.inode is None:
                names.pop(change.name, None)
            else:
                names[change.name] = change.inode
        return names


class Disk:
    """Everything below one folder, which is there and durable itself."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.inodes: dict[int, File | Folder] = {0: Folder()}
        self.changes = 0

    def moved_to(self, root: str) -> Disk:
        """A copy of it in another place: what another process goes on with."""
        copy = deepcopy(self)
        copy.root = root
        return copy

    def apply(self, op: Op) -> None:
        if op.kind == "mark":
            return
        parent, name = self._parent(op.path)
        if op.kind == "create":
            known = parent.now().get(name)
            if known is None:
                self._name(parent, name, self._new(File()))
            elif op.other:
                file = self.inodes[known]
                assert isinstance(file, File)
                file.now = b""
        elif op.kind == "mkdir":
            self._name(parent, name, self._new(Folder()))
        elif op.kind == "write":
            file = self.inodes[parent.now()[name]]
            assert isinstance(file, File)
            file.now = file.now[: op.offset].ljust(op.offset, b"\0") + op.data + file.now[op.offset + len(op.data) :]
        elif op.kind == "copy":
            source, source_name = self._parent(op.other)
            copied = self.inodes[source.now()[source_name]]
            assert isinstance(copied, File)
            data = copied.now[op.offset : op.offset + op.size]
            self.apply(replace(op, kind="write", other="", data=data))
        elif op.kind == "sync":
            self._sync(self.inodes[0] if op.path == self.root else self.inodes[parent.now()[name]])
        elif op.kind in ("unlink", "rmdir"):
            self._name(parent, name, None)
        elif op.kind in ("link", "rename"):
            target, target_name = self._parent(op.other)
            inode = parent.now()[name]
            self._name(target, target_name, inode, is_move=op.kind == "rename")
            if op.kind == "rename":
                parent.pending.append(Change(name, None, self.changes, is_move=True))
        else:
            raise NotImplementedError(op.kind)

    @property
    def is_settled(self) -> bool:
        """Whether a power cut would leave just what is there."""
        return not any(node.pending if isinstance(node, Folder) else node.now != node.durable for node in self._live())

    def states(self, seed: str, drawn: int) -> Iterator[tuple[str, Tree]]:
        """States that a power cut may leave: the corners, and as many more as said, drawn from the seed."""
        whole, none = (lambda file: file.now), (lambda file: file.durable)
        yield "all that was not synced is lost", self._tree(lambda _: False, none)
        if self.is_settled:
            return
        yield "all is there, as after a kill", self._tree(lambda _: True, whole)
        yield "names without contents", self._tree(lambda _: True, none)
        yield "removals alone", self._tree(lambda change: change.inode is None and not change.is_move, whole)
        yield "new names alone", self._tree(lambda change: change.inode is not None and not change.is_move, whole)
        for number in range(drawn):
            draw = random.Random(f"{seed} {number}")
            if number % 2:
                last = draw.choice(self._pending_orders())
                yield f"names up to change {last}", self._tree(_up_to(last), _torn(draw))
            else:
                kept = {order for order in self._pending_orders() if draw.random() < 0.5}
                yield f"changes {sorted(kept)}", self._tree(_among(kept), _torn(draw))

    def now(self) -> Tree:
        """As processes see it."""
        return self._tree(lambda _: True, lambda file: file.now)

    def _tree(self, chosen: Callable[[Change], bool], contents: Callable[[File], bytes]) -> Tree:
        tree: Tree = {}
        read: dict[int, bytes] = {}

        def walk(folder: Folder, prefix: str) -> None:
            for name, inode in sorted(folder.now(chosen).items()):
                node = self.inodes[inode]
                if isinstance(node, Folder):
                    tree[prefix + name] = None
                    walk(node, f"{prefix}{name}/")
                else:
                    tree[prefix + name] = inode, read.setdefault(inode, contents(node))

        top = self.inodes[0]
        assert isinstance(top, Folder)
        walk(top, "")
        return tree

    def _pending_orders(self) -> list[int]:
        return sorted({c.order for node in self._live() if isinstance(node, Folder) for c in node.pending}) or [0]

    def _live(self) -> Iterator[File | Folder]:
        """What a name leads to, now or after a loss."""
        seen: set[int] = set()
        waiting = [0]
        while waiting:
            inode = waiting.pop()
            if inode in seen:
                continue
            seen.add(inode)
            node = self.inodes[inode]
            yield node
            if isinstance(node, Folder):
                waiting += [*node.durable.values(), *(c.inode for c in node.pending if c.inode is not None)]

    def _parent(self, path: str) -> tuple[Folder, str]:
        if path == self.root:
            return Folder(), ""
        assert path.startswith(f"{self.root}/"), f"{path} is not below {self.root}"
        node = self.inodes[0]
        *folders, name = path.removeprefix(f"{self.root}/").split("/")
        for folder in folders:
            assert isinstance(node, Folder)
            node = self.inodes[node.now()[folder]]
        assert isinstance(node, Folder)
        return node, name

    def _new(self, node: File | Folder) -> int:
        number = len(self.inodes)
        self.inodes[number] = node
        return number

    def _name(self, folder: Folder, name: str, inode: int | None, *, is_move: bool = False) -> None:
        self.changes += 1
        folder.pending.append(Change(name, inode, self.changes, is_move))

    def _sync(self, node: File | Folder) -> None:
        if isinstance(node, File):
            node.durable = node.now
        else:
            node.durable, node.pending = node.now(), []


def _torn(draw: random.Random) -> Callable[[File], bytes]:
    """Of what was not synced: nothing, all, a part, the length with zeros, or pages that were not written. Where bytes
    were appended, those before them stay: a write harms no other bytes, as each log that is appended to takes for
    granted (SQLite's "powersafe overwrite")."""

    def contents(file: File) -> bytes:
        if file.now == file.durable:
            return file.now
        how = draw.randrange(5)
        if how == 0:
            return file.durable
        if how == 1:
            return file.now
        cut = draw.randint(len(file.durable) if file.now.startswith(file.durable) else 0, len(file.now))
        if how == 2:
            return file.now[:cut]
        if how == 3:
            return file.durable[: len(file.now)].ljust(len(file.now), b"\0")
        return file.now[:cut].ljust(len(file.now), b"\0")

    return contents


def materialise(tree: Tree, folder: Path) -> None:
    first: dict[int, Path] = {}
    for path, file in tree.items():
        if file is None:
            (folder / path).mkdir()
        elif file[0] in first:
            (folder / path).hardlink_to(first[file[0]])
        else:
            first[file[0]] = folder / path
            (folder / path).write_bytes(file[1])


def _up_to(last: int) -> Callable[[Change], bool]:
    return lambda change: change.order <= last


def _among(orders: set[int]) -> Callable[[Change], bool]:
    return lambda change: change.order in orders
