"""What is done to a table by others while its pipeline is down: foreign commits, clean-up, full disks, lost files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from laketier.spi import AddColumn, Token
from laketier.tiering import TieringRound
from laketier.tiering.failpoints import PUBLISH_AFTER, PUBLISH_BEFORE
from laketier_verification.faults import work
from laketier_verification.faults.pipeline import Pipeline, Unexpected

EPOCH = 3
Row = tuple[str, str, Callable[[Pipeline], None]]


def of(format: str) -> Iterator[Row]:
    """Cells that are not about failpoints: fault, point, script."""
    for name, change in _FOREIGN[format].items():
        yield "kill after publish, then others change the table", name, partial(_changed_by_others, change=change)
        yield "pause before publish, while others change the table", name, partial(_changed_meanwhile, change=change)
    yield "change the schema in mid-epoch", "add a column", _schema_changed
    yield "pause while another pipeline commits", "100 times" if format != "iceberg" else "30 times", _overrun
    for free in (0, 4, 16, 32, 64):
        yield "fill the disk", f"{free} KiB left", partial(_full_disk, free=free * 1024)
    for limit in (1, 64, 512):
        yield "limit the size of files", f"{limit} bytes", partial(_limited, limit=limit)
    if format == "localfile":
        yield "lose a published file before its rename", "both names missing", _both_missing
        yield "keep both names of a published file", "both names exist", _both_exist
        yield "damage the newest manifest", "cut short", _torn_manifest
        yield "spread a table over two file systems", "staging folder", _two_devices


def commit_as_another_pipeline(pipeline: Pipeline, times: int = 1) -> None:
    """Rounds without rows: they take part in every compare-and-set, and can't be mistaken for rows."""
    lake = pipeline.lake
    for _ in range(times):
        factory = lake.storage.tiering_factory(pipeline.info)
        epoch = pipeline.settings.setdefault("foreign_epochs", 0)
        pipeline.settings["foreign_epochs"] = epoch + 1
        TieringRound(factory, token=Token("another", "run", epoch)).commit_messages([])


def _changed_by_others(pipeline: Pipeline, change: Callable[[Pipeline], None]) -> None:
    """The epoch has landed and nobody knows; then its table is changed. The replay is still a no-op."""
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}")
    change(pipeline)
    pipeline.look()
    pipeline.finish()


def _changed_meanwhile(pipeline: Pipeline, change: Callable[[Pipeline], None]) -> None:
    """Between the look at the table and the commit. It goes through, or has to be run again."""
    life = pipeline.start(f"{PUBLISH_BEFORE}=pause(FLAG)@{EPOCH + 1}")
    if not life.until_paused():
        raise Unexpected("it was not paused")
    change(pipeline)
    life.resume()
    if pipeline.end(life)["outcome"] not in ("finished", "refused", "failed"):
        raise Unexpected(f"it ended otherwise: {pipeline.lives[-1]}")
    pipeline.look()
    pipeline.finish()


def _overrun(pipeline: Pipeline) -> None:
    times = 30 if pipeline.format == "iceberg" else 100
    _changed_by_others(pipeline, partial(commit_as_another_pipeline, times=times))


def _schema_changed(pipeline: Pipeline) -> None:
    """After staging, before publishing: refused, and staged anew by the restart."""
    import pyarrow as pa

    life = pipeline.start(f"{PUBLISH_BEFORE}=pause(FLAG)@{EPOCH + 1}", begin=False)
    if not life.until_paused():
        raise Unexpected("it was not paused")
    catalog = pipeline.lake.storage.catalog()
    catalog.alter_table(pipeline.lake.config.table, [AddColumn(pa.field("more", pa.int64()))])
    life.resume()
    pipeline.end(life, "SchemaChanged")
    pipeline.look()
    pipeline.finish()


# -- disks --------------------------------------------------------------------------------------------------------


def _full_disk(pipeline: Pipeline, free: int) -> None:
    """A small file system of its own fills up; when there is room again, the pipeline goes on."""
    pipeline.settings["width"] = 2_000
    if not _mount(pipeline.warehouse, 64 << 20):
        raise NotHere("mounting a tmpfs needs root; see the cells that limit the size of files")
    try:
        pipeline.die(f"{PUBLISH_AFTER}=kill@2")
        filler = pipeline.warehouse / "filler"
        status = os.statvfs(pipeline.warehouse)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, status.f_bavail * status.f_frsize - free)
        pipeline.live("", "failed")
        pipeline.look()
        filler.unlink()
        pipeline.finish()
        pipeline.verdict()
    finally:
        subprocess.run(["umount", "-l", str(pipeline.warehouse)], check=True)


def _limited(pipeline: Pipeline, limit: int) -> None:
    """No file may grow beyond this (RLIMIT_FSIZE)."""
    pipeline.die(f"{PUBLISH_AFTER}=kill@2")
    pipeline.live("", "failed", file_bytes=limit)
    pipeline.look()
    pipeline.finish()


class NotHere(Exception):
    """What a cell needs is not to be had on this machine."""


def _mount(folder: Path, size: int) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "faults", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


# -- commits and clean-up of others -------------------------------------------------------------------------------


def _delta_compact(pipeline: Pipeline) -> None:
    import deltalake

    deltalake.DeltaTable(pipeline.info.location).optimize.compact()


def _delta_vacuum(pipeline: Pipeline) -> None:
    import deltalake

    table = deltalake.DeltaTable(pipeline.info.location)
    table.vacuum(retention_hours=168, dry_run=False)


def _delta_cleanup(pipeline: Pipeline) -> None:
    import deltalake

    table = deltalake.DeltaTable(pipeline.info.location)
    table.create_checkpoint()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    deltalake.DeltaTable(pipeline.info.location).cleanup_metadata()


def _iceberg_table(pipeline: Pipeline) -> object:
    from pyiceberg.catalog import load_catalog

    uri = f"sqlite:///{pipeline.warehouse}/catalog.db"
    return load_catalog("laketier", type="sql", uri=uri).load_table(work.TABLE)


def _iceberg_expire(pipeline: Pipeline) -> None:
    from datetime import datetime, timedelta

    table = _iceberg_table(pipeline)
    table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()  # type: ignore[attr-defined]


def _iceberg_property(pipeline: Pipeline) -> None:
    table = _iceberg_table(pipeline)
    with table.transaction() as transaction:  # type: ignore[attr-defined]
        transaction.set_properties({"owner": "somebody"})


def _lance_compact(pipeline: Pipeline) -> None:
    import lance

    lance.dataset(pipeline.info.location).optimize.compact_files()


def _lance_cleanup(pipeline: Pipeline) -> None:
    from datetime import timedelta

    import lance

    lance.dataset(pipeline.info.location).cleanup_old_versions(older_than=timedelta(0), delete_unverified=False)


_FOREIGN: dict[str, dict[str, Callable[[Pipeline], None]]] = {
    "delta": {
        "compaction": _delta_compact,
        "vacuum": _delta_vacuum,
        "checkpoint and log cleanup": _delta_cleanup,
        "a commit of another pipeline": commit_as_another_pipeline,
    },
    "iceberg": {
        "expiry of snapshots": _iceberg_expire,
        "a property": _iceberg_property,
        "a commit of another pipeline": commit_as_another_pipeline,
    },
    "lance": {
        "compaction": _lance_compact,
        "cleanup of old versions": _lance_cleanup,
        "a commit of another pipeline": commit_as_another_pipeline,
    },
    "localfile": {"a commit of another pipeline": commit_as_another_pipeline},
}


# -- local files --------------------------------------------------------------------------------------------------

_LINKED = "publish.after_manifest_before_renames"


def _both_missing(pipeline: Pipeline) -> None:
    """Rows are lost, by somebody who deletes files: what counts is that it is said."""
    pipeline.die(f"{_LINKED}=kill@{EPOCH + 1}")
    staged = sorted((Path(pipeline.info.location) / "__in_progress").iterdir())
    kept = staged[0].read_bytes()
    staged[0].unlink()
    pipeline.live("", "CorruptTable")
    staged[0].write_bytes(kept)  # from the backup
    pipeline.finish()


def _both_exist(pipeline: Pipeline) -> None:
    pipeline.die(f"{_LINKED}=kill@{EPOCH + 1}")
    root = Path(pipeline.info.location)
    for staged in (root / "__in_progress").iterdir():
        os.link(staged, root / staged.name.removesuffix(".inprogress"))
    pipeline.finish()


def _torn_manifest(pipeline: Pipeline) -> None:
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}")
    manifests = sorted(Path(pipeline.info.location).glob("_laketier_manifests/*/[0-9]*.json"))
    whole = manifests[-1].read_bytes()
    manifests[-1].write_bytes(whole[: len(whole) // 2])
    pipeline.live("", "CorruptTable")
    manifests[-1].write_bytes(whole)
    pipeline.finish()


def _two_devices(pipeline: Pipeline) -> None:
    """Renames could not be atomic: refused at the start."""
    pipeline.die(f"{PUBLISH_AFTER}=kill@{EPOCH + 1}")
    staging = Path(pipeline.info.location) / "__in_progress"
    if not _mount(staging, 1 << 20):
        raise NotHere("mounting a tmpfs needs root")
    try:
        pipeline.live("", "UnsafeTable")
    finally:
        subprocess.run(["umount", "-l", str(staging)], check=True)
    pipeline.finish()
