"""The cells of the bare lane: what is done to a pipeline, by format and failpoint."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from laketier.tiering.failpoints import ACK_BEFORE, DISCARD_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE, ROUND_OPENED
from laketier_verification.faults import sabotage
from laketier_verification.faults.pipeline import Pipeline, Unexpected

EPOCH = 3
"""The epoch that most faults meet: there are some before it, and some after it."""


@dataclass(frozen=True)
class Cell:
    """One thing that may happen to a pipeline. ``point``: the failpoint, or what else there is to vary."""

    lane: str
    format: str
    fault: str
    point: str
    script: Callable[[Pipeline], None]
    needs: str = ""
    """A feature of the format without which the cell does not apply."""

    @property
    def name(self) -> str:
        return f"{self.lane}-{self.format}-{self.fault}-{self.point}".replace(" ", "_")


@dataclass(frozen=True)
class Passage:
    """Which failpoints a driver without faults passes, and how often in which epoch."""

    hits: Mapping[str, Counter[int]]

    @classmethod
    def of(cls, passed: Sequence[tuple[str, int]]) -> Passage:
        hits: dict[str, Counter[int]] = defaultdict(Counter)
        for name, epoch in passed:
            hits[name][epoch] += 1
        return cls(hits)

    @property
    def points(self) -> list[str]:
        return list(self.hits)

    def hit(self, point: str, epoch: int = EPOCH) -> int:
        """The number of the last hit of ``point`` in ``epoch``, or of the very last where the epoch has none."""
        hits = self.hits[point]
        before = sum(count for other, count in hits.items() if other < epoch)
        return before + hits[epoch] if hits[epoch] else sum(hits.values())


def bare_cells(format: str, passage: Passage, replacing: Mapping[str, Passage]) -> Iterator[Cell]:
    """All cells of a format. ``replacing``: the passage of a driver whose epoch `EPOCH` replaces all there is, by the
    write mode that it does it with."""

    def cell(fault: str, point: str, script: Callable[[Pipeline], None], needs: str = "") -> Cell:
        return Cell("bare", format, fault, point, script, needs)

    for point in passage.points:
        hit = passage.hit(point)
        yield cell("kill", point, partial(kill, point=point, hit=hit))
        yield cell("kill in the first epoch", point, partial(kill, point=point, hit=1))
        yield cell("kill, and kill the recovery", point, partial(_kill_twice, point=point, hit=hit, second=point))
        yield cell(
            "kill, and kill the recovery before its answer",
            point,
            partial(_kill_twice, point=point, hit=hit, second=ACK_BEFORE),
        )
        yield cell("error once", point, partial(error, point=point, hit=f"@{hit}"))
        yield cell("error each time", point, partial(error, point=point, hit=""))
        if EPOCH in passage.hits[point]:
            yield cell("pause while a second driver finishes", point, partial(_overtaken, point=point, hit=hit))
            yield cell(
                "pause while a driver with a newer lease finishes",
                point,
                partial(_overtaken, point=point, hit=hit, fence=1),
            )
            yield cell("pause while orphans are collected", point, partial(collected, point=point, hit=hit), "orphans")
    for mode, other in replacing.items():
        for point in other.points:
            if EPOCH in other.hits[point]:
                replaced = partial(_kill_replacing, point=point, hit=other.hit(point), mode=mode)
                yield cell(f"kill in an {mode}", point, replaced)
    yield cell("kill", DISCARD_BEFORE, _kill_discard)
    yield cell("error once", DISCARD_BEFORE, _fail_discard)
    if format == "iceberg":
        yield cell("kill", "publish.between_refusal_and_look", _kill_after_conflict)
    for point in ("orphans.listed", "orphans.fenced", "orphans.selected"):
        yield cell("kill the collector", point, partial(_kill_collector, point=point), "orphans")
    for fault, point, script in _AROUND:
        yield cell(fault, point, script)
    yield from (cell(*rest) for rest in sabotage.of(format))


def kill(pipeline: Pipeline, point: str, hit: int) -> None:
    pipeline.die(f"{point}=kill@{hit}")
    pipeline.finish()


def _kill_twice(pipeline: Pipeline, point: str, hit: int, second: str) -> None:
    pipeline.die(f"{point}=kill@{hit}")
    result = pipeline.live(f"{second}=kill@1")
    if result["outcome"] not in ("killed", "finished"):
        raise Unexpected(f"the recovery ended otherwise: {result}")
    pipeline.look()
    pipeline.finish()


def error(pipeline: Pipeline, point: str, hit: str) -> None:
    """It goes on by itself, or ends with the error; either is fine."""
    result = pipeline.live(f"{point}=error{hit}", "finished", "failed", record=True)
    if point not in [name for name, _ in result["passed"]]:
        raise Unexpected(f"it did not reach {point}")
    pipeline.look()
    pipeline.finish()


def _overtaken(pipeline: Pipeline, point: str, hit: int, fence: int = 0) -> None:
    """The first driver stands still; a second takes over and finishes; then the first goes on."""
    first = pipeline.start(f"{point}=pause(FLAG)@{hit}")
    if not first.until_paused():
        raise Unexpected(f"it did not reach {point}: {first.wait()}")
    pipeline.look()
    pipeline.finish(fence=fence)
    first.resume()
    pipeline.end(first, "Fenced" if fence else "Stale")
    pipeline.settings["fence"] = fence
    pipeline.finish()


def collected(pipeline: Pipeline, point: str, hit: int) -> None:
    """Orphans are collected, without any grace, while a driver stands still."""
    first = pipeline.start(f"{point}=pause(FLAG)@{hit}")
    if not first.until_paused():
        raise Unexpected(f"it did not reach {point}: {first.wait()}")
    pipeline.live("", "finished", collect=True)
    pipeline.look()
    first.resume()
    pipeline.end(first)
    pipeline.look()
    pipeline.finish()


def _kill_replacing(pipeline: Pipeline, point: str, hit: int, mode: str) -> None:
    pipeline.settings |= {"overwrite": EPOCH, "overwrite_by": mode}
    pipeline.only = range(EPOCH, pipeline.epochs)
    pipeline.die(f"{point}=kill@{hit}")
    pipeline.finish()


def _kill_discard(pipeline: Pipeline) -> None:
    """An engine that stages before it looks: the replay of an epoch that landed is about to delete its files."""
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}")
    pipeline.die(f"{DISCARD_BEFORE}=kill", begin=False)
    pipeline.finish(begin=False)


def _fail_discard(pipeline: Pipeline) -> None:
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}")
    pipeline.live(f"{DISCARD_BEFORE}=error", "FailpointError", begin=False)
    pipeline.look()
    pipeline.finish(begin=False)


def _kill_after_conflict(pipeline: Pipeline) -> None:
    """Another pipeline commits between the look and the commit, so that the commit is refused."""
    life = pipeline.start(f"{PUBLISH_BEFORE}=pause(FLAG)@{EPOCH + 1};publish.between_refusal_and_look=kill")
    if not life.until_paused():
        raise Unexpected("it was not paused")
    sabotage.commit_as_another_pipeline(pipeline)
    life.resume()
    pipeline.end(life, "killed")
    pipeline.look()
    pipeline.finish()


def _kill_collector(pipeline: Pipeline, point: str) -> None:
    """It has something to delete, and a driver goes on after it."""
    pipeline.die(f"{PUBLISH_BEFORE}=kill@{EPOCH + 1}")
    pipeline.live(f"{point}=kill", "killed", collect=True)
    pipeline.look()
    pipeline.finish()
    pipeline.live("", "finished", collect=True)


# -- around the checkpoint ----------------------------------------------------------------------------------------


def _newest_acknowledgement_lost(pipeline: Pipeline) -> None:
    pipeline.finish()
    (pipeline.progress.folder / "acks" / str(pipeline.epochs - 1)).unlink()
    pipeline.live("", "finished")


def _acknowledgement_lost_midway(pipeline: Pipeline) -> None:
    pipeline.die(f"{ROUND_OPENED}=kill@{EPOCH + 1}")
    (pipeline.progress.folder / "acks" / str(EPOCH - 1)).unlink()
    pipeline.finish()


def _progress_deleted(pipeline: Pipeline) -> None:
    pipeline.finish()
    pipeline.forget_progress()
    result = pipeline.live("", "TokenMismatch")
    _says(result, "laketier pipeline adopt")


def _progress_deleted_midway(pipeline: Pipeline) -> None:
    pipeline.die(f"{PUBLISH_BEFORE}=kill@{EPOCH + 1}")
    pipeline.forget_progress()
    _says(pipeline.live("", "TokenMismatch"), "laketier pipeline adopt")
    pipeline.only = range(EPOCH)


def _older_progress_restored(pipeline: Pipeline) -> None:
    pipeline.finish()
    for epoch in range(EPOCH, pipeline.epochs):
        (pipeline.progress.folder / "acks" / str(epoch)).unlink()
        (pipeline.progress.folder / "intents" / str(epoch)).unlink()
    _says(pipeline.live("", "Stale"), "laketier pipeline show")


def _other_rows_under_the_same_epoch(pipeline: Pipeline) -> None:
    pipeline.finish()
    last = str(pipeline.epochs - 1)
    (pipeline.progress.folder / "acks" / last).unlink()
    (pipeline.progress.folder / "intents" / last).unlink()
    _says(pipeline.live("", "TokenMismatch", salt=1), "other input")


def _two_logs_one_pipeline(pipeline: Pipeline) -> None:
    """A second job with a progress log of its own, and the same pipeline id."""
    first = pipeline.start(f"{PUBLISH_BEFORE}=pause(FLAG)@{EPOCH + 1}")
    if not first.until_paused():
        raise Unexpected("it was not paused")
    pipeline.live("", "TokenMismatch", progress=str(pipeline.folder / "other"), salt=1)
    first.resume()
    pipeline.end(first, "finished")


def _duplicates(pipeline: Pipeline) -> None:
    """Each task runs twice, as speculation does, and one of the results is taken."""
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}", duplicates=True)
    pipeline.finish(duplicates=True)


def _files_run_out(pipeline: Pipeline, spare: int) -> None:
    pipeline.live("", files_open=spare)
    pipeline.look()
    pipeline.finish()


def _says(result: Mapping[str, Any], text: str) -> None:
    if text not in result["message"]:
        raise Unexpected(f"the refusal does not say {text!r}: {result['message']}")


_AROUND: Sequence[tuple[str, str, Callable[[Pipeline], None]]] = (
    ("delete the newest acknowledgement", "at the end", _newest_acknowledgement_lost),
    ("delete the newest acknowledgement", "midway", _acknowledgement_lost_midway),
    ("delete the whole progress log", "at the end", _progress_deleted),
    ("delete the whole progress log", "midway", _progress_deleted_midway),
    ("restore an older progress log", "three epochs back", _older_progress_restored),
    ("restore an older progress log", "other rows, same epoch", _other_rows_under_the_same_epoch),
    ("two jobs with one pipeline id", "side by side", _two_logs_one_pipeline),
    ("run each task twice", "and kill", _duplicates),
    *(
        ("run out of file handles", f"{spare} to spare", partial(_files_run_out, spare=spare))
        for spare in (0, 1, 2, 3, 4, 6, 8, 12)
    ),
)
