"""The crash points that a sink must survive, and the cells that put it through each; or why there are none.

The list is that of a survey of other sinks; its names are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CrashPoint:
    """``cells``: (fault, point) pairs, either of which may be ``*`` at its end to stand for any rest. ``note``: what is
    not covered, or done elsewhere."""

    name: str
    expected: str
    cells: Sequence[tuple[str, str]] = ()
    note: str = ""

    def covers(self, fault: str, point: str) -> bool:
        """Whether a cell is about this."""
        return any(_fits(fault, cell[0]) and _fits(point, cell[1]) for cell in self.cells)


def _fits(text: str, pattern: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


_UNSYNCED = "Loss of unsynced data is not part of this matrix: tests of their own look at the order of syncs."
_POWER = "Power cuts at each step are tests of their own, for JSON and Arrow (`tests/faults/test_syscalls.py`)."

CRASH_POINTS = (
    CrashPoint("`write.mid_file`", "invisible; the staged file is an orphan", [("kill*", "write.mid_file")], _UNSYNCED),
    CrashPoint(
        "`stage.after_close_before_fsync`",
        "a missing or short file is noticed; the epoch is done again",
        [("kill*", "stage.after_close_before_fsync"), ("fail an attempt*", "*")],
        _UNSYNCED,
    ),
    CrashPoint(
        "`stage.after_fsync_before_manifest`",
        "orphans; the epoch is done again, once",
        [("kill*", "stage.after_fsync"), ("kill*", "publish.before*")],
    ),
    CrashPoint("`manifest.torn`", "refused by its checksum", [("damage the newest manifest", "*")]),
    CrashPoint(
        "`manifest.after_write_before_engine_ack`",
        "adopted or redone, never both",
        [
            ("kill*", "publish.after_manifest_before_renames"),
            ("kill*", "publish.between_record_and_commit"),
            ("kill*", "publish.between_manifests_and_commit"),
            ("kill*", "publish.between_commit_*"),
        ],
    ),
    CrashPoint("`engine_ack.before_commit`", "the epoch is done again", [("kill*", "publish.before")]),
    CrashPoint(
        "`commit.after_k_of_n_renames`",
        "the rest is renamed; no reader of laketier's sees k",
        [("kill*", "publish.mid_renames"), ("kill*", "publish.mid_retire")],
        "Plain readers of local files may see some files of a commit before the others until the table is next opened.",
    ),
    CrashPoint(
        "`commit.rename_before_dir_fsync`",
        "the old state, or done again",
        [("kill*", "publish.after_renames_before_sync")],
        _UNSYNCED,
    ),
    CrashPoint(
        "`commit.after_renames_before_publish`",
        "publish only; no loss",
        [("kill*", "publish.after_renames_before_head")],
        "Local files are published before they are renamed.",
    ),
    CrashPoint(
        "`commit.after_publish_before_ack`",
        "a replay is a no-op, also after foreign commits, compaction, expiry or log cleanup",
        [
            ("kill*", "publish.after"),
            ("kill*", "ack.before"),
            ("kill after publish, then others change the table", "*"),
            ("delete the newest acknowledgement", "*"),
            ("delete the checkpoint's newest commit", "*"),
            ("pause while another pipeline commits", "*"),
        ],
    ),
    CrashPoint(
        "`commit.error_mid_list` (ENOSPC, EFBIG, EMFILE)",
        "resumed when there is room again",
        [("fill the disk", "*"), ("limit the size of files", "*"), ("run out of file handles", "*"), ("error*", "*")],
        "The small disk is a tmpfs of its own, which needs root; the others are limits of the process.",
    ),
    CrashPoint(
        "`commit.unknown_outcome`",
        "read again by its token; nothing is deleted before that",
        [("error*", "publish.after"), ("error*", "publish.between_commit_*"), ("error*", "ack.before")],
    ),
    CrashPoint("`recover.crash_during_recovery`", "recovery is idempotent", [("kill, and kill the recovery*", "*")]),
    CrashPoint(
        "`recover.open_file`",
        "exactly what was recorded, its end at the end, as a file of its own",
        [
            ("kill with a file open", "*"),
            ("kill while a file gets its end", "*"),
            ("kill while the last files are finished", "*"),
            ("error once, a file open", "*"),
            ("write behind what was recorded of an open file", "*"),
        ],
        _POWER,
    ),
    CrashPoint(
        "`recover.open_file.crash_during_recovery`",
        "another finishes it; half a copy is an orphan",
        [("kill who finishes an open file*", "*"), ("fail who finishes an open file", "*")],
        _POWER,
    ),
    CrashPoint(
        "`recover.open_file.zombie`",
        "refused, or its next rows go into another file; what was finished stays as it is",
        [("pause with a file open*", "*"), ("pause who finishes an open file*", "*")],
        "The plugin's tests freeze writers by SIGSTOP at random moments, too.",
    ),
    CrashPoint(
        "`recover.open_file.damaged`",
        "a loud error that names the file; nothing is filled or published",
        [("lose an open file", "*"), ("cut an open file", "*"), ("change an open file", "*")],
    ),
    CrashPoint(
        "`recover.tmp_and_dest_both_missing`", "a loud error", [("lose a published file before its rename", "*")]
    ),
    CrashPoint(
        "`recover.both_exist`",
        "one file; another one under the name is an error",
        [("keep both names of a published file", "*")],
        "The error is tested by the plugin's own tests.",
    ),
    CrashPoint(
        "`restore.older_checkpoint`, `restore.new_checkpoint_same_output`",
        "refused with a clear message",
        [
            ("delete the whole*", "*"),
            ("restore an older progress log", "three epochs back"),
            ("restore an older checkpoint", "*"),
        ],
    ),
    CrashPoint(
        "`replay.different_range_same_epoch`",
        "`TokenMismatch`",
        [("restore an older progress log", "other rows, same epoch")],
    ),
    CrashPoint(
        "`zombie.writer_after_failover`, `speculative.task_duplicate`",
        "refused; one attempt wins",
        [
            ("pause while a second driver finishes", "*"),
            ("pause while a driver with a newer lease finishes", "*"),
            ("run each task twice", "*"),
            ("fail an attempt whose file is staged", "*"),
            ("kill Python workers, tasks run again", "*"),
            ("kill the daemon of the Python workers", "*"),
        ],
        "Spark does not speculate in local mode: a second attempt of a task is brought about by the failure of the "
        "first, and in the bare lane by running each task twice.",
    ),
    CrashPoint(
        "`two_jobs.same_dir`, `serial_name_clash`",
        "refused",
        [("two jobs with one pipeline id", "*")],
        "Names can't clash: they hold 80 random bits.",
    ),
    CrashPoint(
        "`rescale.N_to_M`",
        "every epoch once",
        [("kill", "publish.before")],
        "In each cell a restarted driver has another number of tasks than the one before it.",
    ),
    CrashPoint(
        "`lance.many_foreign_versions`, `lance.after_cleanup_old_versions`",
        "still a no-op",
        [("kill after publish, then others change the table", "*"), ("pause while another pipeline commits", "*")],
    ),
    CrashPoint(
        "`lance.concurrent_append`, `lance.concurrent_compact`",
        "rebased once, nothing doubled",
        [("pause before publish, while others change the table", "*")],
    ),
    CrashPoint(
        "`schema.change_mid_epoch`, `cache.stale_after_schema_update`",
        "refused before anything is published",
        [("change the schema in mid-epoch", "*")],
    ),
    CrashPoint("`rename.EXDEV`", "refused at the start", [("spread a table over two file systems", "*")]),
    CrashPoint(
        "`reader.during_commit`",
        "all of an epoch, or nothing",
        [("pause while a second driver finishes", "*"), ("pause while a driver with a newer lease finishes", "*")],
        "Looked at while the driver stands at the failpoint, and after each death.",
    ),
    CrashPoint(
        "`gc.concurrent_with_slow_writer`",
        "nothing live is deleted",
        [("pause while orphans are collected", "*"), ("kill the collector", "*")],
    ),
)
