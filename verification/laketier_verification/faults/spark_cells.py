"""The cells of the Spark lanes: every failpoint once per format, the lanes and actions taken in turn; and what only an
engine has: workers, task attempts, checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from laketier.tiering.failpoints import PUBLISH_AFTER
from laketier_verification.faults.cells import Cell
from laketier_verification.faults.pipeline import Pipeline, Unexpected
from laketier_verification.faults.spark_lane import LANES, SparkLife

WORKER_POINTS = ("write.", "stage.")
"""Prefixes of failpoints that tasks pass, in Spark's Python workers."""


def spark_cells(format: str, points: Sequence[str], turn: int, *, every: bool = False) -> Iterator[Cell]:
    """``points``: what a driver of the format passes. ``turn``: shifts which lane meets which point, so that over all
    formats each point of the protocol meets each lane. ``every``: all lanes and actions for each point."""
    for number, point in enumerate(point for point in points if not point.startswith("create.")):
        pairs = [(lane, action) for lane in LANES for action in ("kill", "error")]
        chosen = pairs if every else [(LANES[(number + turn) % 3], ("kill", "error")[(number + turn // 3) % 2])]
        for lane, action in chosen:
            harm = _kill if action == "kill" else _error
            yield Cell(lane, format, action, point, partial(harm, point=point))
    for number, (fault, what, lanes, script) in enumerate(_ENGINE):
        chosen_lanes = lanes if every else [lanes[(number + turn) % len(lanes)]]
        for lane in chosen_lanes:
            yield Cell(lane, format, fault, what, script)


def _hit(pipeline: Pipeline, point: str) -> int:
    """Processes of tasks and of a stream's commits begin to count anew."""
    in_driver = not point.startswith(WORKER_POINTS) and pipeline.settings["lane"] != "stream"
    return 2 if in_driver else 1


def _kill(pipeline: Pipeline, point: str) -> None:
    """The driver is killed where it passes the point itself. Where a Python worker or the commit process of a stream
    does, that one is killed, and the job fails when each attempt has died."""
    result = pipeline.live(f"{point}=kill@{_hit(pipeline, point)}", "killed", "failed")
    in_driver = _hit(pipeline, point) == 2
    if in_driver != (result["outcome"] == "killed"):
        raise Unexpected(f"another process died: {result}")
    pipeline.look()
    pipeline.finish()


def _error(pipeline: Pipeline, point: str) -> None:
    pipeline.live(f"{point}=error@{_hit(pipeline, point)}", "finished", "failed")
    pipeline.look()
    pipeline.finish()


def _kill_driver(pipeline: Pipeline) -> None:
    """The driver stands in mid-publish; then its whole session is killed: Python, JVM, workers."""
    life = pipeline.start(f"{PUBLISH_AFTER}=pause(FLAG)@{_hit(pipeline, PUBLISH_AFTER)}")
    if not life.until_paused():
        raise Unexpected(f"it was not paused: {life.wait()}")
    life.kill()
    pipeline.lives.append({"outcome": "killed"})
    pipeline.look()
    pipeline.finish()


def _kill_worker(pipeline: Pipeline) -> None:
    """Each worker dies in its second file; Spark runs the task again in another one, and the job goes on."""
    pipeline.live("write.mid_file=kill@2", "finished", tasks=1)
    pipeline.finish()


def _kill_daemon(pipeline: Pipeline) -> None:
    """A task stands in mid-file; then Spark's daemon for Python workers and all workers are killed."""
    life = pipeline.start("write.mid_file=pause(FLAG)@1", tasks=1)
    assert isinstance(life, SparkLife)
    if not life.until_paused():
        raise Unexpected(f"it was not paused: {life.wait()}")
    life.kill_workers()
    life.resume()
    while life.until_paused():  # the next attempts are not disturbed
        life.resume()
    pipeline.end(life, "finished", "failed")
    pipeline.look()
    pipeline.finish()


def _speculation(pipeline: Pipeline) -> None:
    """Two attempts of one task: the first fails after its rows were staged, as that of a slow host does."""
    pipeline.live("stage.after_close_before_fsync=error@2", "finished", "failed", tasks=2)
    pipeline.look()
    pipeline.finish()


def _newest_commit_deleted(pipeline: Pipeline) -> None:
    pipeline.finish()
    commits = pipeline.progress.folder / "commits"
    for name in (f"{pipeline.epochs - 1}", f".{pipeline.epochs - 1}.crc"):
        (commits / name).unlink()
    pipeline.live("", "finished")


def _checkpoint_deleted(pipeline: Pipeline) -> None:
    """A new checkpoint on an old table."""
    pipeline.finish()
    pipeline.forget_progress()
    _says(pipeline.live("", "TokenMismatch"), "laketier pipeline adopt")


def _older_checkpoint(pipeline: Pipeline) -> None:
    """Restored from when only the first epoch was done."""
    folder = pipeline.progress.folder
    pipeline.finish()
    for name in ("commits", "offsets", "sources/0"):
        for path in (folder / name).iterdir():
            if path.name.lstrip(".").split(".")[0] != "0":
                path.unlink()
    _says(pipeline.live("", "Stale"), "laketier pipeline show")


def _progress_deleted(pipeline: Pipeline) -> None:
    """Batches have no run of their own: epoch 0 again is an old epoch."""
    pipeline.finish()
    shutil.rmtree(pipeline.progress.folder)
    _says(pipeline.live("", "Stale"), "laketier pipeline show")


def _says(result: dict[str, object], text: str) -> None:
    if text not in str(result["message"]):
        raise Unexpected(f"the refusal does not say {text!r}: {str(result['message'])[-500:]}")


_STREAM = ("stream",)
_BATCHES = ("batch", "split")
_ENGINE: Sequence[tuple[str, str, Sequence[str], Callable[[Pipeline], None]]] = (
    ("kill the driver, its JVM and all workers", PUBLISH_AFTER, LANES, _kill_driver),
    ("kill Python workers, tasks run again", "write.mid_file", LANES, _kill_worker),
    ("kill the daemon of the Python workers", "write.mid_file", LANES, _kill_daemon),
    ("fail an attempt whose file is staged", "stage.after_close_before_fsync", LANES, _speculation),
    ("delete the checkpoint's newest commit", "at the end", _STREAM, _newest_commit_deleted),
    ("delete the whole checkpoint", "at the end", _STREAM, _checkpoint_deleted),
    ("restore an older checkpoint", "after epoch 0", _STREAM, _older_checkpoint),
    ("delete the whole progress log", "at the end", _BATCHES, _progress_deleted),
)
