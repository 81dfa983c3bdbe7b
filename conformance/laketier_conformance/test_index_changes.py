"""Between a plan of an index and its publish the index changes, a column or a result: nothing wrong is published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IndexMode,
    IndexPlan,
    IndexSpec,
    LaketierError,
    Leaf,
    Op,
    RenameColumn,
    TableChanged,
)
from laketier_conformance import apart
from laketier_conformance.documents import FILTERED, Documents, kind_of_numbers, size_of
from laketier_conformance.expect import expect, goes_well, is_final, refused, the_one, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake

INDEXED = pytest.mark.needs(Feature.INDEXING)
Unproven = Callable[[str, str], None]


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of 40 rows in four files, without an index. Of a format that builds none, it is empty."""
    texts = Documents.of(lake, harness)
    return texts.filled(rows=10) if lake.declares(Feature.INDEXING) else texts


def _of_sizes(texts: Documents, column: str = "size") -> IndexSpec:
    return IndexSpec(FILTERED, column, kind_of_numbers(texts.indexer, column))


def _answers(texts: Documents, about: str, column: str = "size") -> None:
    """Each filter finds the rows that fulfil it, and the index knows each row once."""
    for leaf, sizes in (
        (Leaf(column, Op.EQ, 4), (4,)),
        (Leaf(column, Op.IN, (0, 1, 2, 3, 99)), (0, 1, 2, 3)),
        (Leaf(column, Op.GE, 5), range(5, 11)),
    ):
        with goes_well(f"{about}: rows are read where {leaf}"):
            rows = texts.table.read(columns=("id",), filters=(leaf,))
        expected = sorted(i for i in texts.ids if size_of(i) in sizes)
        expect(sorted(rows["id"].to_pylist()), expected, f"{about}: the rows where {leaf}")
    for info in texts.indexer.indexes():
        known = info.rows_indexed - info.rows_deleted + info.rows_not_indexed
        expect(known, len(texts.ids), f"{about}: the rows that an index has, and has not")


# -- the index ------------------------------------------------------------------------------------------------------


def _dropped(texts: Documents, _: IndexSpec) -> None:
    texts.indexer.drop(FILTERED)


def _replaced(texts: Documents, spec: IndexSpec) -> None:
    texts.index(2, IndexMode.REPLACE, spec)


def _appended(texts: Documents, spec: IndexSpec) -> None:
    texts.index(1, IndexMode.APPEND, spec)


def _merged(texts: Documents, spec: IndexSpec) -> None:
    texts.index(1, IndexMode.MERGE, spec)


def _of_another_column(texts: Documents, _: IndexSpec) -> None:
    texts.indexer.drop(FILTERED)
    texts.index(2, spec=_of_sizes(texts, "id"))


_MEANWHILE = (_dropped, _replaced, _appended, _merged, _of_another_column)


@INDEXED
@pytest.mark.parametrize("mode", [*IndexMode])
@pytest.mark.parametrize("meanwhile", _MEANWHILE, ids=lambda each: each.__name__.strip("_"))
def test_an_index_that_changed_since_its_plan(
    texts: Documents, mode: IndexMode, meanwhile: Callable[[Documents, IndexSpec], None]
) -> None:
    """Of what was built for it either nothing is published, or it answers right. Whoever plans again publishes."""
    spec = _of_sizes(texts)
    about = f"a plan ({mode.value}) of an index that was{meanwhile.__name__.replace('_', ' ')} before it was published"
    planned = texts.built(2, mode, spec) if mode is IndexMode.CREATE else None  # before there is any
    texts.index(2, spec=spec)
    texts.append(4, range(1000, 1010))
    try:
        plan, built = planned or texts.built(1, mode, spec)
    except FeatureNotSupported:
        return
    try:
        meanwhile(texts, spec)
    except FeatureNotSupported:
        return
    before = {each.name: each for each in texts.indexer.indexes()}
    with goes_well(about, but=(TableChanged,)):
        try:
            texts.indexer.publish(plan, built)
        except TableChanged:
            expect({e.name: e for e in texts.indexer.indexes()}, before, f"{about}: the indexes, when it was refused")
            _answers(texts, f"{about}, and refused")
            _plans_again(texts, plan, built, about)
    _answers(texts, about)


def _plans_again(texts: Documents, plan: IndexPlan, built: list[BuiltIndexPart], about: str) -> None:
    try:
        again = texts.indexer.replan(plan, built, 2)
    except ConfigError:
        return  # there is no such index any more, or another one
    info = texts.indexer.publish(again, [again.builder.build(part) for part in again.parts])
    expect(info.column, plan.spec.column, f"{about}: the column of the index, when it was planned again")


@INDEXED
def test_an_append_of_nothing_to_an_index_that_is_gone(texts: Documents) -> None:
    """It is told: there is no index to answer with."""
    spec = _of_sizes(texts)
    texts.index(1, spec=spec)
    plan, built = texts.built(1, IndexMode.APPEND, spec)
    expect([len(plan.parts), len(built)], [0, 0], "the parts of an append of nothing")
    texts.indexer.drop(FILTERED)
    with refused((TableChanged, ConfigError), "an append of nothing is published, and its index was dropped"):
        texts.indexer.publish(plan, built)


# -- the column -----------------------------------------------------------------------------------------------------


@pytest.mark.needs(Feature.INDEXING, Feature.RENAME_COLUMN)
@pytest.mark.parametrize("since", ["its-plan", "its-publish"])
def test_a_column_is_renamed(texts: Documents, since: str) -> None:
    """The index goes on under the new name, or is gone; one that was built for the former name is not published."""
    spec = _of_sizes(texts)
    plan, built = texts.built(2, spec=spec)
    if since == "its-publish":
        texts.indexer.publish(plan, built)
    texts.table.lake.storage.catalog().alter_table(texts.table.path, [RenameColumn("size", "extent")])
    about = f"an index whose column was renamed after {since.replace('-', ' ')}"
    if since == "its-plan":
        with goes_well(about, but=(TableChanged,)):
            try:
                texts.indexer.publish(plan, built)
            except TableChanged:
                expect(texts.indexer.indexes(), [], f"{about}: the indexes, when it was refused")
    for info in texts.indexer.indexes():
        expect(info.column, "extent", f"{about}: its column")
    _answers(texts, about, "extent")
    with refused(ConfigError, f"{about}: another one is planned by the former name"):
        texts.indexer.plan(replace(spec, name="another"), 1)


# -- what tasks built -----------------------------------------------------------------------------------------------


@INDEXED
def test_a_result_that_somebody_changed(texts: Documents) -> None:
    """What tasks give back comes from outside. It is refused by an error of laketier's, or the index answers right."""
    plan, (first, second) = texts.built(2, spec=_of_sizes(texts))
    of_the_other = plan.builder.build(second.part)
    for what, odd in (
        ("that was built of another part", replace(of_the_other, part=first.part, rows=first.rows)),
        ("whose segment is a path", replace(first, segment=f"../{first.segment}")),
        ("whose segment is empty", replace(first, segment="")),
        ("whose segment nobody built", replace(first, segment=first.segment[:-8] + "00000000")),
        ("that says what another one says of itself", replace(first, payload=second.payload)),
        *((f"that says {text!r} of itself", replace(first, payload=text)) for text in ("", "{}", "[]", "null", "0")),
        *((f"of whose word for itself {how}", replace(first, payload=text)) for how, text in _forged(first.payload)),
    ):
        about = f"a result {what} is published"
        try:
            texts.indexer.publish(plan, [odd, second])
        except LaketierError as error:
            is_final(error, about)
            expect(texts.indexer.indexes(), [], f"{about}: the indexes, when it was refused")
            continue
        except Exception as error:
            raise AssertionError(f"{about}: expected an error of laketier's, found {told(error)}") from error
        _answers(texts, about)
        texts.indexer.drop(FILTERED)
    texts.indexer.publish(plan, [second, first])
    _answers(texts, "an index whose results were put back")


_ODD: tuple[Any, ...] = (None, -1, "../odd", [], {}, True)


def _forged(payload: str) -> Iterator[tuple[str, str]]:
    """A payload of JSON, with another value in the place of each."""
    try:
        said = json.loads(payload)
    except ValueError:
        return
    for place in _places(said):
        for odd in _ODD:
            copy = json.loads(payload)
            here = copy
            for step in place[:-1]:
                here = here[step]
            if here[place[-1]] != odd:
                here[place[-1]] = odd
                yield f"{'.'.join(map(str, place))} is {odd!r}", json.dumps(copy)


def _places(said: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside: Mapping[Any, Any] = said if isinstance(said, dict) else dict(enumerate(said)) if type(said) is list else {}
    for key, value in inside.items():
        yield (*at, key)
        yield from _places(value, (*at, key))


@INDEXED
def test_files_of_a_result_that_are_not_as_they_were(texts: Documents, unproven: Unproven) -> None:
    """It is refused, or the index answers right: nobody acknowledges an index whose files are not there."""
    root, plan, built, left = _left(texts)
    if not left:
        unproven("files of results that are not as they were", "a build leaves no files in a local folder")
        return
    for name in sorted(left):
        for how in ("gone", "cut", "longer"):
            path = root / left[name]
            content = apart.read(path)
            if how == "gone":
                path.unlink()
            else:
                apart.write(path, content[: len(content) // 2] if how == "cut" else content + b"\0")
            about = f"an index is published whose file {name} is {how}"
            try:
                texts.indexer.publish(plan, built)
            except LaketierError as error:
                is_final(error, about)
                expect(texts.indexer.indexes(), [], f"{about}: the indexes, when it was refused")
                apart.write(path, content)
            else:
                _answers(texts, about)
                texts.indexer.drop(FILTERED)
                root, plan, built, left = _left(texts)


def _left(texts: Documents) -> tuple[Path, IndexPlan, list[BuiltIndexPart], dict[str, str]]:
    """A plan of one part, what a task built, and a file of each name that it left."""
    before = texts.table.lake.files()
    plan, built = texts.built(1, spec=_of_sizes(texts))
    names = sorted(texts.table.lake.files() - before)
    return Path(texts.table.lake.location), plan, built, {Path(name).name: name for name in names}


@INDEXED
@pytest.mark.parametrize("then", ["replaced", "dropped"])
def test_an_index_whose_files_are_gone(texts: Documents, then: str, unproven: Unproven) -> None:
    """It is told as damaged, or the table is. It can be replaced, and it can be dropped: the rows are there."""
    root, plan, built, left = _left(texts)
    if not left:
        unproven("indexes whose files are gone", "a build leaves no files in a local folder")
        return
    texts.indexer.publish(plan, built)
    for name in left.values():
        (root / name).unlink(missing_ok=True)  # a publish may take what it needs no more
    about = f"an index whose files are gone, and that is {then}"
    with goes_well(about):
        if then == "dropped":
            texts.indexer.drop(FILTERED)
        else:
            texts.index(2, IndexMode.REPLACE, _of_sizes(texts))
            info = the_one(texts.indexer.indexes(), "the indexes of the table")
            expect(info.damage, None, f"{about}: its damage")
    _answers(texts, about)
