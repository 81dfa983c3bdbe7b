"""The power is cut in the middle of requests and after their answers, and another process finds what is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from laketier_conformance.children import Child
from laketier_conformance.interposed.deciding import Run
from laketier_conformance.interposed.disk import Disk, Tree, Unsynced, put, same
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.runs import Interposed
from laketier_conformance.lake import Lake

_MOST = 12
"""Missing syncs of one request that are told, and looked at alone."""


@dataclass(frozen=True)
class PowerCut:
    """What the disk may hold after a power cut. ``answered``: how many requests were. ``told``: when it was, and
    what is left, for messages."""

    answered: int
    told: str
    tree: Tree


@dataclass
class PowerCuts:
    """Requests for one warehouse on the disk below ``folder``, where the power may be cut."""

    runs: Interposed
    lake: Lake
    take: Callable[[int], list[Child]]
    folder: Path
    unseen: Callable[[str], NoReturn]
    """Ends the test: what it is about can't be seen."""
    within: list[PowerCut] = field(default_factory=list)
    """Some before a request was answered."""
    after: list[PowerCut] = field(default_factory=list)
    """Some after it was."""
    requests: list[Run] = field(default_factory=list)

    def __enter__(self) -> PowerCuts:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._disk = Disk(self.folder)
        return self

    def __exit__(self, *raised: object) -> None:
        self._disk.close()

    def put_back(self, tree: Tree) -> None:
        """Begin again with what the disk held at some moment."""
        put(tree, self._disk.root)
        self.restart()

    @property
    def now(self) -> Tree:
        """All that the disk holds, durable or not."""
        return self._disk.now()

    def restart(self) -> Disk:
        """Take all that is there for durable, and forget what was before. The disk, for what asks without this."""
        self._disk.close()
        self._disk = Disk(self.folder)
        self.requests, self.within, self.after = [], [], []
        return self._disk

    @property
    def cannot(self) -> str:
        """Why the power can't be cut here, after some requests: a sentence, or nothing."""
        peers, elsewhere = self.runs.sight.peers, self.runs.sight.left_elsewhere
        if peers:
            return f"power cuts: rows or watermarks may be with {', '.join(peers)}, and its disk can't be cut"
        if elsewhere:
            return f"power cuts: {elsewhere} is outside of the folder that the test gave to the harness"
        return ""

    @property
    def worst(self) -> PowerCut:
        """A power cut now, of which nothing is left that was not synced."""
        return self._worst("now", self._disk.unsynced())

    def survivors(self, table: str, epoch: int) -> list[int] | str | None:
        """Cut the power now. The ids that are left of a table, None where there is none, or what went wrong when it
        was read, and an epoch that was answered was replayed."""
        (answer,) = self.left_by([self.worst], lambda _: {"do": "recover", "table": table, "epoch": epoch})
        seen: list[int] | None = answer.get("seen")
        return seen if "outcome" in answer else f"{answer}"

    def ask(
        self,
        do: str,
        at: int = -1,
        decided: int = 0,
        *,
        cut: bool = False,
        alone: bool = True,
        needed: bool = True,
        **request: Any,
    ) -> Run:
        """A request to a process of its own; step number ``at`` fails with the errno ``decided``, or is where it is
        killed. ``cut``: also in the middle of it. ``alone``: each sync that is missing after its answer is looked at
        alone, too. ``needed``: where the power can't be cut, the test ends."""
        seen: set[int] = set()

        def look(last: Effect) -> None:
            self.within += self._cuts(f"after {last.below(str(self._disk.root))}", seen)

        run = self.runs.run(do, at=at, decided=decided, disk=self._disk, cut=look if cut else None, **request)
        if self.cannot and needed:
            self.unseen(self.cannot)
        if run.answer is None or "failed" in run.answer or "refused" in run.answer:
            return run
        self.requests.append(run)
        after = f"{do!r} was answered"
        lost = list(itertools.islice(self._disk.unsynced(), _MOST))
        if alone:
            # A reader that does without a file may stumble over what is left of it.
            told = f"{after}, and no sync made durable "
            answered = len(self.requests)
            self.after += [PowerCut(answered, f"{told}{each.thing}: a power cut loses it", each.tree) for each in lost]
        self.after.append(self._worst(f"after {after}", lost))
        return run

    def left_by(self, cuts: list[PowerCut], recover: Callable[[PowerCut], dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """For each of them, what a new process answers to a request that ``recover`` makes. Afterwards the disk is as
        the last one left it."""
        for cut in cuts:
            put(cut.tree, self._disk.root)
            (child,) = self.take(1)
            yield child.ask(self.lake, **recover(cut))
            child.stop()

    def _worst(self, when: str, lost: Iterable[Unsynced]) -> PowerCut:
        cut = next(self._cuts(when, set()))
        things = ", ".join(each.thing for each in itertools.islice(lost, _MOST))
        return replace(cut, told=f"{cut.told}; not synced: {things}") if things else cut

    def _cuts(self, when: str, seen: set[int]) -> Iterator[PowerCut]:
        for what, tree in self._disk.states():
            number = same(tree)
            if number not in seen:
                seen.add(number)
                yield PowerCut(len(self.requests), f"a power cut {when} ({what})", tree)
