"""Manifests as the chain of their digests has them: each names the one before it, from the newest one on.

A manifest that lies in its own place may still be none of the table's: a restore took the table back, other commits got
the numbers of those that were lost, and a second restore brings one of these. So an older manifest is compared with
what the newest one, or one that it vouches for, says of it, before anything is told from it. What says so is near by
(see `digests`). Where a laketier from before wrote the table, and named nothing, the chain tells all the same of files;
columns are read as they lie there until the next commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from laketier.kit.manifests.digests import step_towards
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog, replaced
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import blocks_back_from, files_at
from laketier.spi.errors import SnapshotNotFound
from laketier.spi.table import TableDescriptor


def manifest_at(manifests: ManifestLog, number: int, head: Manifest) -> Manifest:
    """The manifest of snapshot ``number`` of the history that ends with ``head``, in few reads. Raises as
    `ManifestLog.at`, and `CorruptTable` where it is of another history."""
    return _compared(manifests, manifests.at(number, head), head)


def _compared(manifests: ManifestLog, found: Manifest, head: Manifest) -> Manifest:
    """``found``, which is of the history that ends with ``head``. Raises `CorruptTable` where it is of another one."""
    near = _nearest(manifests, found.number, head)
    expected = near.digest_of(found.number)
    if expected is None:
        for block in blocks_back_from(manifests, near.number, down_to=found.number + 1, known=near):
            expected = block.previous
    if found.sha256 != expected:
        raise replaced(manifests, found.number)
    return found


def _nearest(manifests: ManifestLog, number: int, head: Manifest) -> Manifest:
    """The manifest that names ``number`` by its digest, of those that ``head`` vouches for; or the one nearest to it,
    where writers from before named none. Raises as `manifest_at`."""
    near = head
    while near.digest_of(number) is None:
        step = step_towards(number, near)
        if step is None:
            break
        found = manifests.read(step)
        if found.sha256 != near.digest_of(step):
            raise replaced(manifests, step)
        near = found
    return near


def written_with(manifests: ManifestLog, number: int, manifest: Manifest) -> TableDescriptor:
    """The description of the table that manifest ``number`` holds, in the history of ``manifest``. Raises as
    `ManifestLog.metadata`."""
    near = _nearest(manifests, number, manifest)
    return manifests.metadata(replace(near, metadata=None, metadata_at=number))


def with_columns_named(manifests: ManifestLog, head: Manifest) -> Manifest:
    """``head``, and by its digest the manifest that set the table's columns, where a writer from before did not name
    it: for who is about to write. Raises as `ManifestLog.read`, and `CorruptTable` where it is of another history."""
    if head.digest_of(head.metadata_at) is not None:
        return head
    holder = _compared(manifests, manifests.read(head.metadata_at), head)  # its snapshot may have expired
    return replace(head, digests={**head.digests, holder.number: holder.sha256})


def files_before(manifests: ManifestLog, manifest: Manifest) -> list[FileEntry]:
    """The live data files of the snapshot before ``manifest``. Raises as `back_from`."""
    _, before = back_from(manifests, manifest, down_to=manifest.number - 1)
    return files_at(manifests, before.number, before)


def manifest_as_of(manifests: ManifestLog, moment: int, head: Manifest) -> Manifest:
    """The manifest that was current at ``moment`` in the history that ends with ``head``. Raises as
    `ManifestLog.as_of` and `manifest_at`."""
    try:
        found = manifests.as_of(moment, head)
    except SnapshotNotFound:
        manifest_at(manifests, head.earliest, head)  # it said that it is later
        raise
    if found.number == head.number:
        return found
    # It is known to be later than the moment. Where both are of this history, so is all that lies in between.
    after = manifest_at(manifests, found.number + 1, head)
    if after.previous != found.sha256:
        raise replaced(manifests, found.number)
    return found


def onward(manifests: ManifestLog, start: int, end: int, head: Manifest) -> Iterator[Manifest]:
    """The manifests ``start`` to ``end`` (exclusive) of the history that ends with ``head``, one after the other: which
    of them is of another history is told when all are read, at the latest. Raises as `manifest_at`."""
    if start >= end:
        return
    last, before = manifest_at(manifests, end - 1, head), ""
    for number in range(start, end):
        manifest = last if number == last.number else manifests.at(number, head)
        if before not in ("", manifest.previous):
            raise replaced(manifests, number - 1)
        yield manifest
        before = manifest.sha256


def back_from(manifests: ManifestLog, newest: Manifest, *, down_to: int) -> Iterator[Manifest]:
    """Each manifest from ``newest`` back to ``down_to``, one after the other. Raises as `ManifestLog.read`, and
    `CorruptTable` where one is of another history."""
    yield newest
    after = newest
    for number in range(newest.number - 1, down_to - 1, -1):
        found = manifests.read(number)
        if found.sha256 != after.previous:
            raise replaced(manifests, number)
        yield found
        after = found
