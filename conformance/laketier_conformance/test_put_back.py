"""A table that was put back from a backup gives its numbers to other commits, and stamps tell these apart."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from laketier.spi import Feature
from laketier_conformance import apart
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.lake import Table, ids_of

pytestmark = pytest.mark.needs(Feature.INCREMENTAL_READ)


def _copied(source: Path, target: Path) -> None:
    """With the bytes alone, as a tool for backups may: the files have dates of their own."""
    if target.exists():
        shutil.rmtree(target)
    apart.copy(source, target)
    for copied in target.rglob("*"):
        os.utime(copied)


def test_a_version_keeps_its_stamp(table: Table) -> None:
    """Whoever asks, whatever came later, and also of a copy."""
    table.append(0)
    changes, version = table.changes, table.latest - 1
    stamp = changes.stamp(version)
    with goes_well("the stamp of a version that the table has not reached is asked for"):
        found = changes.stamp(version + 1)
    expect(found, None, "the stamp of a version that the table has not reached")
    if stamp is None:
        return  # a format without them is refused nothing
    for epoch in (1, 2):
        table.append(epoch)
    expect(changes.stamp(version), stamp, "the stamp of a version after later commits, told by an older handle")
    expect(table.changes.stamp(version), stamp, "the stamp of a version after later commits, told by another handle")
    stamps = [changes.stamp(each) for each in range(version, table.latest)]
    told = [each for each in stamps if each is not None]
    expect(len(set(told)), len(told), f"the number of stamps that differ, of {stamps} of versions one after the other")
    warehouse = Path(table.lake.location)
    if warehouse.is_dir():
        table.lake.let_age()
        _copied(warehouse, warehouse.with_name("kept"))
        _copied(warehouse.with_name("kept"), warehouse)
        expect(table.changes.stamp(version), stamp, "the stamp of a version in a copy of the whole warehouse")


def test_another_commit_of_the_same_number_has_another_stamp(table: Table) -> None:
    """A copy that has read a commit, of which a restored table knows nothing, must not take the next one for it."""
    table.append(0)
    warehouse, kept = Path(table.lake.location), Path(table.lake.location).with_name("kept")
    if table.changes.stamp(table.latest - 1) is None or not warehouse.is_dir():
        return
    _copied(warehouse, kept)
    table.append(1, ids_of(1))
    version = table.latest - 1
    stamp = table.changes.stamp(version)
    assert stamp is not None, f"the newest version has a stamp, as the one before it: found none of version {version}"
    _copied(kept, warehouse)
    table.append(1, ids_of(2))
    expect(table.latest - 1, version, "the version of another commit after the table was put back")
    expect(table.ids, ids_of(0) + ids_of(2), "the rows of a table that was put back and has grown again")
    assert table.changes.stamp(version) != stamp, (
        f"version {version} of a table that was put back from a backup is another commit: expected another stamp than "
        f"{stamp}, which it had before, and found the same"
    )
