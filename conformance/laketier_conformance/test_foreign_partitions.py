"""Tables with partitions that other tools change: each row is told in the partition that it is of by now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laketier.spi import Feature, PartitionField, ScanRequest
from laketier_conformance import foreign
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of, name_of, read_split, token

Unproven = Callable[[str, str], None]
_HIDDEN = pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS)


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("name", marks=pytest.mark.needs(Feature.PARTITIONING)),
        pytest.param("truncate(5, name)", marks=_HIDDEN),
        pytest.param("bucket(4, name)", marks=_HIDDEN),
    ],
)
def test_rows_that_others_put_into_another_partition(lake: Lake, harness: Harness, unproven: Unproven, by: str) -> None:
    """By changing the column that it is made of: each row is there once, and its split tells the partition that a round
    puts such a row into. An upsert that skips splits by it would else leave the row, and write its key again."""
    field = PartitionField.parse(by)
    table = lake.create(partition_by=(field,))
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    whole = ids_of(0, 0) + ids_of(0, 1)
    updated = [whole[0], whole[1], whole[6]]
    if harness.update_rows is None:
        unproven("rows that others put into another partition", "the format's harness has no update_rows")
        return
    if not foreign.takes_partitions(lambda: foreign.update(table, harness, updated, "name", foreign.CHANGED)):
        unproven("rows that others put into another partition", "the harness's update_rows takes no partitions")
        return
    names = {i: foreign.CHANGED if i in updated else name_of(i) for i in whole}
    foreign.has_names(table, names, f"a table by {by} is read of which others updated rows")
    for name, ids in ((foreign.CHANGED, updated), (name_of(updated[0]), [])):
        told = f"the rows where name = {name!r}, of a table by {by}, after the update"
        expect(foreign.ids_named(table, name), ids, told)
    came = {90: foreign.CHANGED, 91: name_of(updated[0]), 92: name_of(whole[2])}
    table.publish_arrow([foreign.rows_named(list(came), list(came.values()))], token(1))
    for name, values in _partitions(table, field.name).items():
        assert len(values) == 1, (
            f"splits tell one partition of all rows with the name {name!r}, in a table by {by} of which others updated "
            f"rows before a round brought more: found {sorted(map(str, values))}"
        )
    foreign.has_names(table, names | came, f"a table by {by} is read after the round that followed the update")


def _partitions(table: Table, field: str) -> dict[str | None, set[str | None]]:
    """For each name, the values of a partition field that its rows are told to have."""
    source = table.source
    plan = source.plan(ScanRequest(columns=("name",)))
    found: dict[str | None, set[str | None]] = {}
    for split in plan.splits:
        told = dict(split.partition)
        if field in told:
            for rows in read_split(source, split, plan.schema):
                for name in rows["name"].to_pylist():
                    found.setdefault(name, set()).add(told[field])
    return found


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_that_others_put_together(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Each by itself: a row of one that is left as it is stays deleted, and no file is told to be of another one."""
    table = lake.create(partition_by=(PartitionField("name"),))  # a format without partitions refuses here
    if harness.compact is None or harness.delete_rows is None:
        unproven("partitions that others put together", "the format's harness has no compact, or no delete_rows")
        return
    names = {0: "many", 1: "many", 2: "one", 3: "one", 4: None, 5: None, 6: "whole"}
    for epoch, ids in enumerate(([0, 2, 3, 4, 5, 6], [1])):
        table.publish_arrow([foreign.rows_named(ids, [names[i] for i in ids])], token(epoch))
    compact, left = harness.compact, {i: name for i, name in names.items() if i not in (2, 4)}

    def work() -> None:
        foreign.delete(table, harness, [2, 4])
        compact(table.lake.storage, table.info)

    if not foreign.takes_partitions(work):
        unproven("partitions that others put together", "the harness's compact, or delete_rows, takes no partitions")
        return
    foreign.has_names(table, left, "a table by name is read after a compaction of one of its partitions")
    for name, told in _partitions(table, "name").items():
        expect(told, {name}, f"the partitions that splits of rows with the name {name!r} tell after a compaction")
    for name in ("many", "one", "whole"):
        ids = [i for i in left if left[i] == name]
        sentence = f"the rows where name = {name!r}, after a compaction of a table by name"
        expect(foreign.ids_named(table, name), ids, sentence)
    table.publish_arrow([foreign.rows_named([2], ["one"])], token(2))
    foreign.has_names(table, left | {2: "one"}, "a table by name after a compaction, to which a deleted row came again")
