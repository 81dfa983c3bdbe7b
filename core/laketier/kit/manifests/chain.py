"""Manifests as the chain of their digests has them: each names the one before it, from the newest one on.

A manifest that lies in its own place may still be none of the table's: a restore took the table back, other commits got
the numbers of those that were lost, and a second restore brings one of these. So an older manifest is compared with the
one after it before files are told from it. The columns of a table are read from the manifest that set them as it lies
there: to compare it too, each load of a table would read what came since.
"""

from __future__ import annotations

from collections.abc import Iterator

from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import blocks_back_from, replaced


def manifest_at(manifests: ManifestLog, number: int, head: Manifest) -> Manifest:
    """The manifest of snapshot ``number`` of the history that ends with ``head``, in few reads. Raises as
    `ManifestLog.at`, and `CorruptTable` where it is of another history."""
    found = manifests.at(number, head)
    if number == head.number:
        return found
    expected = head.previous
    for block in blocks_back_from(manifests, head.number, down_to=number + 1, known=head):
        expected = block.previous
    if found.sha256 != expected:
        raise replaced(manifests, number)
    return found


def manifest_as_of(manifests: ManifestLog, moment: int, head: Manifest) -> Manifest:
    """The manifest that was current at ``moment`` in the history that ends with ``head``. Raises as
    `ManifestLog.as_of` and `manifest_at`."""
    found = manifests.as_of(moment, head)
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
