"""A drop beside others: a table that is dropped in mid-publish stays so, and the next one is whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.spi import AddColumn, Feature, LaketierError, ScanRequest, TableNotFound, Watermark, new_attempt_id
from laketier_conformance.child import answer_of
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.deciding import NOWHERE
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.looks import Looks, firsts_and_lasts
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.lake import SCHEMA, Lake, ids_of, token
from laketier_conformance.operations import Answer, went_well
from laketier_conformance.outside import local_folder
from laketier_conformance.stored import Stored
from laketier_conformance.stores.steps import Step, recorded
from laketier_conformance.stores.wsgi import Sent

InStore = Callable[[], Stored]
_STEPS = 3
"""At most so many, where not all are asked for."""
ADDS: dict[str, Any] = {"do": "alter", "table": "db.t", "columns": ["of_no_other"]}
_OTHERS = ("drops the table", "drops the table and makes it anew")


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("anew", [False, True], ids=["dropped", "recreated"])
def test_a_drop_at_each_step_of_a_publish(lake: Lake, anew: bool) -> None:
    """Whatever is raised. A publish that went well was before the drop, or after it in vain."""
    _drop_at_each(lake, anew)


@pytest.mark.needs(Feature.DROP_TABLE, Feature.OBJECT_STORES)
@pytest.mark.parametrize("anew", [False, True], ids=["dropped", "recreated"])
def test_a_drop_at_each_step_of_a_publish_in_a_store(in_store: InStore, anew: bool) -> None:
    """There a commit can be put where no table is, and goes well: whoever does not look afterwards acknowledges rows
    that went with the table, and leaves something by its name that nobody can read. A drop after the commit is as one
    on a disk."""
    lake = in_store().lake

    def is_before_the_commit(_: str) -> bool:
        return lake.table("db.steps").ids == ids_of(0)

    _drop_at_each(lake, anew, is_before_the_commit)


def _drop_at_each(lake: Lake, anew: bool, counts: Callable[[str], bool] | None = None) -> None:
    """At each step, or at the first ones, which ``counts``."""
    _drop_one(lake)
    passed: list[str] = []
    _publish(lake, "db.steps", lambda step: passed.append(step) if counts is None or counts(step) else None)
    for number, step in enumerate(passed):
        _drop_at(lake, f"db.t{number}", number, step, anew)


def _drop_one(lake: Lake) -> None:
    """The refusal of who drops none would be taken for what came of the drop of another."""
    lake.storage.catalog().drop_table(lake.create(name="db.asked").path)


def _add_one(lake: Lake) -> None:
    """As `_drop_one`."""
    lake.storage.catalog().alter_table(lake.create(name="db.added").path, [AddColumn(pa.field("more", pa.string()))])


def _drop_at(lake: Lake, name: str, number: int, step: str, anew: bool) -> None:
    catalog, then = lake.storage.catalog(), f"a drop at {step!r} of a publish"
    left = [number]

    def drop(_: str) -> None:
        left[0] -= 1
        if left[0] == -1:
            try:
                catalog.drop_table(table)
            except Exception as error:  # noqa: BLE001 - of whichever library, it is told
                pytest.fail(
                    f"{then}: expected that somebody else can drop the table there, found {told(error)}. A failpoint "
                    "within a transaction or a lock keeps others out: move it"
                )
            if anew:
                lake.create(name=name)

    table = lake.create(name=name).path
    with suppress(LaketierError, OSError):
        _publish(lake, name, drop)
    assert left[0] < 0, f"{then}: the second publish passed as many steps as the first"
    if not anew:
        with refused(TableNotFound, f"a table is loaded after {then}"):
            catalog.load_table(table)
        expect(
            [found for found in catalog.list_tables() if found == table], [], f"this table in the list, after {then}"
        )
    again = lake.create(name=name)
    expect(again.ids, [], f"rows of the next table of this name, after {then}")
    expect(again.watermark(), None, f"the watermark of the next table of this name, after {then}")
    expect(again.append(0).rows, 5, f"rows of the first round of the next table of this name, after {then}")
    expect(again.ids, ids_of(0), f"rows of the next table of this name after its first round, after {then}")


def _publish(lake: Lake, name: str, at: Callable[[str], None]) -> None:
    table = lake.create(name=name)
    table.append(0)
    committer = table.committer()
    state = committer.open()
    staged = table.staged(ids_of(1))
    with failpoints.observed(at):
        committer.publish(state, [staged], Watermark(token(1), "c"))
    committer.close()


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_is_dropped_beside_who_opened_it(lake: Lake, harness: Harness) -> None:
    """Readers and logs live long. Whatever one is asked once its table was dropped, the table is gone: neither empty
    nor damaged."""
    table = lake.create()
    if lake.declares(Feature.CHANGE_FEED) and harness.keep_feed is not None:
        harness.keep_feed(lake.storage, table.info)
    table.append(0)
    storage, info = lake.storage, table.info
    source = storage.source(info)
    asks: dict[str, Callable[[], object]] = {"a scan is planned": lambda: source.plan(ScanRequest())}
    if lake.declares(Feature.HISTORY):
        history = storage.history(info)
        asks["snapshots are listed"] = lambda: history.snapshots(9)
    if lake.declares(Feature.INCREMENTAL_READ):
        changes, end = storage.changes(info), table.latest
        asks["versions are told"] = changes.versions
        asks["changes are planned"] = lambda: changes.plan(end - 1, end)
    if lake.declares(Feature.CHANGE_FEED):
        feed = storage.feed(info)
        asks["a feed is planned"] = lambda: feed.plan(end - 1, end)
    for ask in asks.values():
        ask()  # some of the answers may be remembered
    lake.storage.catalog().drop_table(table.path)
    for doing, ask in asks.items():
        with refused(TableNotFound, f"{doing} of a table that was dropped since it was opened"):
            ask()


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("what", ["driver", "state", pytest.param("history", marks=pytest.mark.needs(Feature.HISTORY))])
def test_a_table_is_dropped_beside_a_look(
    what: str,
    lake: Lake,
    looks: Callable[[], AbstractContextManager[Looks]],
    children: Callable[[int], list[Child]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Whoever asks what a table tells gets what was there before the drop, or is told that there is no such table: no
    file of it was lost, and who looks for damage, or for a backup, looks in vain. Whether a commit landed may be
    unknown. A lock may keep the drop out."""
    _drop_one(lake)
    beside = lake.create(name="db.beside")
    if what == "history":  # a format without it refuses here
        beside.history.snapshots(1)
    if local_folder(beside.info.location) is None:
        unproven("drops that come before looks", "the table is in no local folder")
        return
    most, draw = -(-pytestconfig.getoption("lake_steps") // 2), pytestconfig.getoption("lake_seed")
    gone = ("TableNotFound", "UnknownOutcome") if what == "driver" else ("TableNotFound",)
    with looks() as looked:
        asked = _made_to_be_asked(lake, what)
        looked.ask("tell", **asked)  # what is done the first time only
        each = firsts_and_lasts(looked.ask("tell", **asked).steps)
        if not each:
            unproven("drops that come before looks", "who asks looks at no file below the warehouse")
        for at in spread(len(each), most, draw):
            asked = _made_to_be_asked(lake, what)
            wanted = answer_of(lake, {"do": "tell", **asked})
            others: list[Child] = []
            run = looked.ask("tell", at=each[at], meanwhile=partial(_drop_meanwhile, others, lake, children), **asked)
            for other in others:
                other.answer()  # a lock may have kept it out for too long
                other.stop()
            answer = run.answer or {"failed": "its process died"}
            assert answer == wanted or answer.get("refused") in gone, (
                f"{looked.told(run, 'somebody dropped the table before')}, by who asks for its {what}: expected "
                f"{wanted} as before, or {' or '.join(gone)}, found {answer}"
            )


def _made_to_be_asked(lake: Lake, what: str) -> dict[str, Any]:
    with suppress(TableNotFound):
        lake.storage.catalog().drop_table(lake.table("db.t").path)
    table, commit = lake.create(), new_attempt_id()
    committer = table.committer(commit_id=commit)
    committer.publish(committer.open(), [table.staged(ids_of(0))], Watermark(token(0), commit))
    committer.close()
    return {"table": "db.t", "what": what, "commit": commit}


def _drop_meanwhile(others: list[Child], lake: Lake, children: Callable[[int], list[Child]]) -> None:
    others += children(1)
    others[-1].begin(lake, "drop", table="db.t")
    others[-1].answers_or_waits()


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_is_made_anew_beside_a_drop(
    lake: Lake, runs: Interposed, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """A drop frees the name, and then tidies up: it takes nothing of the table that others have made under it since."""
    _drop_one(lake)
    lake.create().append(0)
    whole = runs.run(at=NOWHERE, but=SYNCS, do="drop", table="db.t")
    assert went_well(whole.answer), f"a request to drop goes well: found {whole.answer}"
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    for at in spread(len(whole.steps), most and _STEPS, seed):
        lake.create().append(0)
        made: list[Child] = []
        run = runs.run(at=at, but=SYNCS, do="drop", table="db.t", meanwhile=partial(_make, made, lake, children))
        told = runs.told(run, "a drop, and somebody else made the table, and wrote to it, before")
        for rival in made:
            answer = rival.answer()
            assert went_well(answer) or "refused" in answer, f"{told}, and ended with {answer}"
            rival.stop()
        table = lake.create()
        whole_rounds: tuple[list[int], ...] = ([], ids_of(0), ids_of(1), [*ids_of(0), *ids_of(1)])
        assert table.ids in whole_rounds, (
            f"{told}: rows of whole rounds: expected one of {whole_rounds}, found {table.ids}"
        )
        with suppress(TableNotFound):
            lake.storage.catalog().drop_table(table.path)


def _make(made: list[Child], lake: Lake, children: Callable[[int], list[Child]]) -> None:
    (rival,) = children(1)
    made.append(rival)
    rival.begin(lake, "make", table="db.t")
    if rival.answers_or_waits():  # else it waits for the drop
        rival.answer()
        rival.begin(lake, "round", table="db.t", pipeline="rival", epoch=0, tasks=[ids_of(1)])
        rival.answers_or_waits()


@pytest.mark.needs(Feature.DROP_TABLE, Feature.ADD_COLUMN)
def test_a_drop_at_each_step_of_a_change(
    lake: Lake, runs: Interposed, children: Callable[[int], list[Child]], pytestconfig: pytest.Config
) -> None:
    """A column is added, and before some step somebody drops the table, and makes it anew at every second one. Nothing
    of the change comes to the next table but by an answer that says so."""
    _add_one(lake)
    _drop_one(lake)
    lake.create().append(0)
    whole = runs.run(at=NOWHERE, but=SYNCS, **ADDS)
    assert went_well(whole.answer), f"a request to alter goes well: found {whole.answer}"
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    for number, at in enumerate(spread(len(whole.steps), most and _STEPS, seed)):
        _made_once_more(lake)
        (other,), answers = children(1), list[Answer]()
        meanwhile = partial(_drop_and_make, other, answers, lake, anew=number % 2 == 1, locks=True)
        run = runs.run(at=at, but=SYNCS, meanwhile=meanwhile, **ADDS)
        if len(run.steps) <= at:  # it had fewer than before, and nobody was asked to drop
            other.stop()
            continue
        answers = answers or [other.answer()]  # it waited for a lock
        told = runs.told(run, f"a column is added, and somebody {_OTHERS[number % 2]} before")
        _is_changed_or_not(lake, run.answer or {}, answers, told)
        other.stop()


@pytest.mark.needs(Feature.DROP_TABLE, Feature.ADD_COLUMN, Feature.OBJECT_STORES)
@pytest.mark.parametrize("anew", [False, True], ids=["dropped", "recreated"])
def test_a_drop_before_each_request_of_a_change_in_a_store(
    in_store: InStore,
    anew: bool,
    children: Callable[[int], list[Child]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """There the commit of a change goes well where no table is any more, and where another one is: whoever makes it has
    to look, and to take back his own entry, and no other."""
    stored = in_store()
    lake = stored.lake
    _add_one(lake)
    _drop_one(lake)
    lake.create().append(0)
    with recorded(stored.proxy) as sent:
        answer = answer_of(lake, dict(ADDS))
    assert went_well(answer), f"a request to alter in a store goes well: found {answer}"
    (other,) = children(1)
    other.ask(lake, "drop", table=str(lake.create(name="db.first").path))  # what is done the first time only
    most, seed = pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed")
    late = 0
    for at in spread(sum(each.changes for each in sent), most and _STEPS, seed):
        _made_once_more(lake)
        answers: list[Answer] = []
        step = Step(at, None, counts=_changes, meanwhile=partial(_drop_and_make, other, answers, lake, anew=anew))
        with stored.proxy.deciding(step):
            answer = answer_of(lake, dict(ADDS))
            is_late = len(answers) <= anew
        step.wait()
        told = f"a column is added, and somebody {_OTHERS[anew]} before {step.told}"
        assert step.failed is None, f"{told}: the other ended in {step.failed!r}"
        late += is_late
        if not is_late:
            _is_changed_or_not(lake, answer, answers, told)
    if late:
        unproven("drops beside changes in a store", "a request was given up before the table was dropped")


def _changes(sent: Sent) -> bool:
    return sent.changes


def _made_once_more(lake: Lake) -> None:
    with suppress(TableNotFound):
        lake.storage.catalog().drop_table(lake.table("db.t").path)
    lake.create().append(0)


def _drop_and_make(other: Child, answers: list[Answer], lake: Lake, *, anew: bool, locks: bool = False) -> None:
    """In a process of its own. The next table has as many commits as the one that was dropped."""
    other.begin(lake, "drop", table="db.t")
    if locks and not other.answers_or_waits():  # it waits for the change
        return
    answers.append(other.answer())
    if anew and went_well(answers[0]):
        answers.append(other.ask(lake, "fill", table="db.t"))


def _is_changed_or_not(lake: Lake, answer: Answer, others: list[Answer], told: str) -> None:
    """What became of the table, of who dropped it, and perhaps made it anew: nobody is told of a change that is not
    there, and nobody has another one's."""
    assert all(map(went_well, others)), f"{told}: who did so ended with {others}"
    made = len(others) > 1
    if not made:
        with refused(TableNotFound, f"{told}: the table is loaded afterwards"):
            lake.storage.catalog().load_table(lake.table("db.t").path)
        lake.create()
    table = lake.table("db.t")
    uuids = {table.info.table_uuid, *(each["uuid"] for each in others if "uuid" in each)}
    assert len(uuids) == 1, f"{told}: the table that was made anew is another one by now: uuids {uuids}"
    expect(table.ids, ids_of(0) if made else [], f"{told}: rows of the next table")
    is_told = made and went_well(answer)
    columns = [*SCHEMA.names, *ADDS["columns"]] if is_told and len(table.info.schema) > len(SCHEMA) else SCHEMA.names
    expect(table.info.schema.names, columns, f"{told}, and it was answered with {answer}: columns of the next table")
    epoch = int(made)
    expect(table.append(epoch).rows, 5, f"{told}: rows of the next round")
    expect(table.ids, [i for each in range(epoch + 1) for i in ids_of(each)], f"{told}: rows after the next round")
