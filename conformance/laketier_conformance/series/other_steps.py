"""What is done to a table in a series beside rounds of pipelines: columns, what tools of others do, clean-up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa

from laketier.spi import (
    AddColumn,
    Feature,
    FeatureNotSupported,
    LaketierError,
    RenameColumn,
    SchemaChange,
    SetProperty,
    WidenColumn,
)
from laketier.tiering import TieringRound
from laketier_conformance import foreign
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import QUICK
from laketier_conformance.series.life import Life
from laketier_conformance.series.model import Column, named
from laketier_conformance.series.notes import CHANGED, MOVED, Draw
from laketier_conformance.series.steps import Step

_MOST_COLUMNS = 7


def _alter(life: Life, change: SchemaChange, columns: tuple[Column, ...]) -> None:
    life.through.storage.catalog().alter_table(life.table.path, [change])
    life.now, life.factory = replace(life.now, columns=columns), None
    life.note(MOVED)


def _add(life: Life, draw: Draw) -> str | None:
    if len(life.now.columns) >= _MOST_COLUMNS:
        return None
    field = pa.field(f"extra{draw.at}", pa.string())
    _alter(life, AddColumn(field), (*life.now.columns, Column(field.name, field)))
    return f"column {field.name} added"


def _renamed(life: Life, key: str, new: str) -> tuple[Column, ...]:
    return tuple(Column(each.key, each.field.with_name(new)) if each.key == key else each for each in life.now.columns)


def _rename(life: Life, draw: Draw) -> str:
    """To a new name; then to the first one again, which another column may have had meanwhile."""
    old = life.now.name("name")
    taken = {column.field.name for column in life.now.columns}
    new = "name" if "name" not in taken else f"title{draw.at}"
    _alter(life, RenameColumn(old, new), _renamed(life, "name", new))
    return f"column {old} renamed to {new}"


def _rename_another(life: Life, _: Draw) -> str | None:
    """It gets the name that another column had."""
    taken = {column.field.name for column in life.now.columns}
    extra = next((column for column in life.now.columns if column.key.startswith("extra")), None)
    if extra is None or "name" in taken:
        return None
    _alter(life, RenameColumn(extra.field.name, "name"), _renamed(life, extra.key, "name"))
    return f"column {extra.field.name} renamed to name, as another one was called"


def _widen(life: Life, _: Draw) -> str | None:
    if life.wide:
        return None
    life.wide = True
    wider = tuple(
        Column(each.key, each.field.with_type(pa.int64())) if each.key == "made" else each for each in life.now.columns
    )
    _alter(life, WidenColumn(life.now.name("made"), pa.int64()), wider)
    return "column made widened to int64"


def _property(life: Life, draw: Draw) -> str:
    name, before = "acme.note", life.properties.get("acme.note")
    value = None if before is not None and draw.dice.random() < 0.3 else f"note {draw.at}"
    life.through.storage.catalog().alter_table(life.table.path, [SetProperty(name, value, before)])
    life.properties = {} if value is None else {name: value}
    life.note(MOVED)
    return f"property {name} set to {value}"


def _late_files(life: Life, draw: Draw) -> str | None:
    """Staged before a column came, and published after it: they are refused."""
    if len(life.now.columns) >= _MOST_COLUMNS:
        return None
    factory = life.table.factory
    staged = life.staged(factory, life.new_rows(draw, 2))
    mark = life.next("p")
    told = _add(life, draw)
    with refused(LaketierError, "files are published that were staged before a column was added"):
        TieringRound(factory, token=mark, policy=QUICK).commit([staged])
    return f"{told}, and files from before it were refused"


def _made_anew(life: Life, draw: Draw) -> str:
    """Whoever staged files for the former table is refused."""
    factory, old = life.table.factory, life.table.info.table_uuid
    staged = life.staged(factory, life.new_rows(draw, 1))
    life.through.storage.catalog().drop_table(life.table.path)
    gone = life.gone | set(life.now.ids)
    life.make()
    life.gone = gone
    found = life.table.info.table_uuid
    assert found != old, f"a table that was dropped and made anew has another identity: found {found!r} again"
    with refused(LaketierError, "files are published that were staged for a table that was dropped and made anew"):
        TieringRound(factory, policy=QUICK).commit([staged])
    return "dropped, and made anew"


def _delete(life: Life, draw: Draw) -> str | None:
    """Of rows that are there; of one that is gone already, too."""
    ids = draw.some(life.now.ids, draw.dice.randint(1, 3))
    if not ids or life.harness.delete_rows is None:
        return None
    storage, info = life.opened()
    life.harness.delete_rows(storage, info, sorted(ids))
    life.set(life.now.without(ids))
    life.note(CHANGED)
    return f"others deleted {named(ids)}"


def _update(life: Life, draw: Draw) -> str | None:
    count = Counter(row["id"] for row in life.now.rows)
    once = [each for each, times in count.items() if times == 1]
    ids = draw.some(once, draw.dice.randint(1, 2))
    if not ids or life.harness.update_rows is None:
        return None
    text = f"changed {draw.at}"
    storage, info = life.opened()
    life.harness.update_rows(storage, info, sorted(ids), life.now.name("name"), text)
    life.set(replace(life.now, rows=tuple({**row, "name": text} if row["id"] in ids else row for row in life.now.rows)))
    life.note(CHANGED)
    return f"others updated {named(ids)}"


def _compact(life: Life, _: Draw) -> str | None:
    if life.harness.compact is None or not life.now.rows:
        return None
    life.harness.compact(*life.opened())
    life.note(MOVED)
    return "compaction"


def _expire(life: Life, _: Draw) -> str | None:
    if life.harness.expire is None or not life.past:
        return None
    life.lake.let_age()
    life.harness.expire(*life.opened())
    # It may be several commits, of which it leaves the last one.
    life.may_have_ended(but=0)
    life.abandoned.clear()  # a tool of others may delete what nobody published
    life.note(MOVED)
    return "expiry by others"


def _own_expiry(life: Life, draw: Draw) -> str | None:
    """By the format's own hand: the newest are kept, and rows are as before."""
    keep = draw.dice.randint(1, 3)
    storage, info = life.opened()
    if info.snapshot_id is None:
        return None
    life.lake.let_age()
    try:
        found = storage.maintenance(info).expire(retention=0, keep=keep, delete=True)
    except FeatureNotSupported:
        return None
    expect(set(found.removed) - set(found.files), set(), "files that an expiry deleted, and did not tell of")
    life.may_have_ended(but=keep)
    life.note(MOVED)
    return f"expiry of all but {keep}"


def _collect(life: Life, _: Draw) -> str:
    foreign.collect(life.table)
    life.abandoned.clear()
    life.note(MOVED)
    return "orphans collected"


_COLLECTS = (Feature.ORPHAN_COLLECTION,)
OTHERS: tuple[Step, ...] = (
    Step("add column", _add, (Feature.ADD_COLUMN,)),
    Step("rename", _rename, (Feature.RENAME_COLUMN,)),
    Step("rename another", _rename_another, (Feature.RENAME_COLUMN, Feature.ADD_COLUMN)),
    Step("widen", _widen, (Feature.WIDEN_TYPE,)),
    Step("property", _property, (Feature.SET_PROPERTY,), variation=True),
    Step("late files", _late_files, (Feature.ADD_COLUMN,), of=(False,), variation=True),
    Step("made anew", _made_anew, (Feature.DROP_TABLE,), ends=True, makes_anew=True),
    Step("delete", _delete, hook="delete_rows"),
    Step("update", _update, hook="update_rows"),
    Step("compact", _compact, hook="compact"),
    Step("expire", _expire, hook="expire", ends=True),
    Step("own expiry", _own_expiry, _COLLECTS, ends=True),
    Step("collect", _collect, _COLLECTS),
)
