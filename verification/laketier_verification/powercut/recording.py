"""Recordings of the scenario, and the judging of the states that power cuts may leave of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from laketier_verification.powercut.disk import Disk, Tree, materialise
from laketier_verification.powercut.scenario import STEPS
from laketier_verification.powercut.trace import Op, traced
from laketier_verification.powercut.verdict import judge

NAMES = ("link", "unlink", "rename", "mkdir", "rmdir")


@dataclass(frozen=True)
class Recording:
    """What the steps did below ``root``."""

    root: str
    ops: tuple[Op, ...]

    @property
    def sites(self) -> set[str]:
        """The code that asked for syncs."""
        return {op.site for op in self.ops if op.kind == "sync"}

    def without(self, site: str) -> Recording:
        """As if that code did not."""
        return replace(self, ops=tuple(op for op in self.ops if op.kind != "sync" or op.site != site))

    def step(self, number: int) -> tuple[Op, ...]:
        """What one step did, its acknowledgement at the end."""
        marks = [index for index, op in enumerate(self.ops) if op.kind == "mark"]
        return self.ops[marks[2 * number] + 1 : marks[2 * number + 1] + 1]


def record(folder: Path, jobs: Sequence[tuple[Path, int, int]], without: str = "") -> tuple[Op, ...]:
    """Run jobs (a warehouse below ``folder``, the first step, the one after the last) in one process."""
    marks = folder.with_name(f"{folder.name}-marks")
    arguments = ["-m", "laketier_verification.powercut.scenario", str(marks), without]
    arguments += [f"{warehouse}:{first}:{last}" for warehouse, first, last in jobs]
    return tuple(traced(arguments, folder, marks, {"PYTHONDONTWRITEBYTECODE": "1"}))


def record_all(folder: Path, without: str = "") -> Recording:
    """Every step, one after the other, in one new warehouse."""
    warehouse = folder / "warehouse"
    warehouse.mkdir(parents=True)
    return Recording(str(warehouse), record(warehouse, [(warehouse, 0, len(STEPS))], without))


def cuts(recording: Recording) -> Iterator[tuple[int, Disk, int, str]]:
    """Each moment at which the power may fail: its number, the disk, the steps that were acknowledged, what was done
    last. A moment between two writes to one file is like a torn write."""
    disk, acknowledged = Disk(recording.root), 0
    for number, op in enumerate(recording.ops):
        disk.apply(op)
        acknowledged += op.kind == "mark" and op.site.startswith("ack")
        successor = recording.ops[number + 1] if number + 1 < len(recording.ops) else None
        if op.kind != "write" or successor is None or successor.kind != "write":
            yield number, disk, acknowledged, str(op).replace(recording.root, "")


@dataclass
class Judge:
    """Judges each state once. ``wrong`` tells the first few that were not right. ``rule`` raises for a warehouse that
    is not right after so many steps."""

    folder: Path
    rule: Callable[[Path, int], None] = judge
    judged: set[tuple[int, int]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    seen: int = 0

    def look(self, states: Iterable[tuple[str, Tree]], acknowledged: int, when: str) -> bool:
        """Whether all of them were right."""
        right = True
        for what, tree in states:
            self.seen += 1
            key = acknowledged, hash(tuple((path, tree[path]) for path in sorted(tree)))
            if key in self.judged:
                continue
            self.judged.add(key)
            state = self.folder / "state"
            state.mkdir(parents=True)
            materialise(tree, state)
            try:
                self.rule(state, acknowledged)
            except Exception as error:  # noqa: BLE001 - whatever it is, the state is not right
                right = False
                self.wrong.append(f"after {acknowledged} steps, {when}; {what}: {type(error).__name__}: {error}")
            finally:
                shutil.rmtree(state)
        return right
