"""Which tables there are, and what people do to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from laketier.cli import service as cli
from laketier.service.metrics import one_per_name
from laketier.service.schedule import IllegalTransition, State
from laketier.service.state import (
    LeaseEnd,
    LeaseLost,
    RegistrationResult,
    StateStore,
    Success,
)
from laketier.service.until_idle import UntilIdle
from laketier.spi import TableNotFound
from state_tables import A, Clock, names, row, table


def test_registering_again_keeps_state_and_takes_settings(store: StateStore, clock: Clock) -> None:
    assert store.register([table("t")]).new == ("s.t",)
    assert store.register([table("t")]) == type(store.register([table("t")]))()
    (lease,) = store.acquire(A, 1, 30)
    assert store.register([table("t", priority=3, freshness_seconds=10)]).changed == ("s.t",)
    store.finish(lease, Success(epoch=1, offsets="{}"))
    got = row(store, "t")
    assert (got.priority, got.freshness_seconds, got.offsets) == (3, 10, "{}")
    assert got.due_at == clock.now + 10_000
    assert store.register([table("t", freshness_seconds=20)]).changed == ("s.t",)
    assert row(store, "t").due_at == clock.now + 20_000


def test_what_is_gone_is_dropped_and_comes_back(store: StateStore) -> None:
    store.register([table("a"), table("b")])
    leases = store.acquire(A, 2, 30)
    assert store.register([table("a")]).dropped == ("s.b",)
    assert store.register([], unlisted=["s"]).dropped == ()
    assert store.finish_all([(lease, Success()) for lease in leases]) == (leases[1],)
    assert (row(store, "b").state, store.snapshot()[1].last_round.ending) == (State.DROPPED, LeaseEnd.DROPPED)
    with pytest.raises(IllegalTransition, match="lacks"):
        store.resume("s.b")
    assert store.register([table("a"), table("b")]).returned == ("s.b",)
    assert [(lease.table.source_table, lease.fence) for lease in store.acquire(A, 2, 30)] == [("b", 2)]


@pytest.mark.parametrize("paused", [False, True])
def test_what_comes_back_and_can_not_be_opened_is_not_dropped(store: StateStore, clock: Clock, paused: bool) -> None:
    store.register([table("t"), table("u", table_id="", refusal="denied")])
    if paused:
        store.pause("s.t")
    store.register([])
    assert {each.table.state for each in store.snapshot()} == {State.DROPPED}
    back = [table("t", table_id="", refusal="denied"), table("u", table_id="", refusal="denied")]
    assert store.register(back, unlisted=["s"]).returned == ("s.t", "s.u")
    assert (row(store, "t").state, row(store, "t").error) == (State.PAUSED if paused else State.FAILED, "denied")
    assert (row(store, "u").state, row(store, "u").error) == (State.FAILED, "denied")
    assert names(store.acquire(A, 9, 30)) == ([] if paused else ["t"]), "its round says what is wrong, now and later"
    store.register([table("t"), table("u")])
    assert row(store, "u").state is State.SCHEDULED
    store.drop("s.u")
    assert store.register([table("t"), table("u", table_id="", refusal="denied")]).returned == ()


def test_a_refusal_of_any_text_is_stored(store: StateStore) -> None:
    """It may quote the name of a file, whoever named it; other tables are registered all the same."""
    store.register([table("t", table_id="", refusal="no caf\udce9\0"), table("u")])
    assert row(store, "t").error == "no caf\\udce9\\0"
    assert row(store, "u").state is State.NEW


def test_a_recreated_table_is_another_one(store: StateStore) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    did = store.register([table("t", table_id="2")])
    assert (did.recreated, did.new) == (("s.t",), ("s.t",))
    with pytest.raises(LeaseLost):
        store.finish(lease, Success())
    old, new = (status.table for status in store.snapshot())
    assert old.state is State.RECREATED
    assert old.error == "the source's table was recreated: its id was '1' and is '2' now"
    assert (new.state, new.offsets) == (State.NEW, None)
    (lease,) = store.acquire(A, 9, 30)
    assert (lease.table.id, lease.fence) == (new.id, 2), "the target may know the old one's fence"


def test_a_worker_with_an_older_list_does_not_end_the_table_that_was_made_anew(store: StateStore) -> None:
    for table_id in "12":
        store.register([table("t", table_id=table_id)])
    _, newer = (status.table for status in store.snapshot())
    assert store.register([table("t", table_id="1")]) == RegistrationResult()
    assert [status.table for status in store.snapshot()][1] == newer
    assert [lease.table.table_id for lease in store.acquire(A, 9, 30)] == ["2"]


def test_a_table_that_is_refused_stops_and_no_other(store: StateStore) -> None:
    did = store.register([table("a"), table("b", refusal="a and b clash")])
    assert (did.new, did.refused) == (("s.a", "s.b"), ())
    assert (row(store, "b").state, row(store, "b").error) == (State.STOPPED, "a and b clash")
    assert [lease.table.source_table for lease in store.acquire(A, 9, 30)] == ["a"]
    did = store.register([table("a", refusal="both"), table("b", refusal="both")])
    assert did.refused == ("s.a", "s.b")
    assert {row(store, name).error for name in "ab"} == {"both"}
    store.resume("s.b")
    assert store.register([table("a", refusal="both"), table("b")]) == RegistrationResult()
    assert [lease.table.source_table for lease in store.acquire(A, 9, 30)] == ["b"]


def test_no_recreated_table_can_be_resumed(store: StateStore) -> None:
    for table_id in "12":
        store.register([table("t", table_id=table_id)])
    store.drop("s.t")
    assert store.resume("s.t") == ("s.t",)
    assert [status.table.state for status in store.snapshot()] == [State.RECREATED, State.SCHEDULED]


def test_a_table_that_its_source_has_again_goes_on_when_a_person_says_so(store: StateStore) -> None:
    """The file named another cluster for an hour. Then no command helped: the way out was to delete the database."""
    store.register([table("t")])
    store.finish(store.acquire(A, 1, 30)[0], Success(epoch=7, offsets="{}"))
    store.register([table("t", table_id="2")])
    with pytest.raises(IllegalTransition, match="its source listed another table of that name last"):
        store.resume("s.t")
    store.register([table("t")])
    old, new = (status.table for status in store.snapshot())
    assert (old.state, new.state) == (State.RECREATED, State.NEW)
    assert UntilIdle(1).left_out(store.snapshot()) == {"s.t": f"RECREATED: {old.error}"}  # and not what stops the other
    assert "the source has this table again: its id is '1' once more" in old.error
    assert "`laketier service resume FILE s.t`" in old.error
    store.register([table("t", table_id="2")])  # a worker with a newer list: it was an older one that said so
    assert next(status.table.error for status in store.snapshot()) == (
        "the source's table was recreated: its id was '1' and is '2' now"
    )
    store.register([table("t")])
    assert store.resume("s.t") == ("s.t",)
    assert store.register([table("t")]).recreated == ("s.t",)
    old, new = (status.table for status in store.snapshot())
    assert (old.state, old.epoch, old.error, new.state) == (State.SCHEDULED, 7, None, State.RECREATED)
    assert [lease.table.table_id for lease in store.acquire(A, 9, 30)] == ["1"]


@pytest.mark.parametrize(
    ("tell", "state"), [(StateStore.pause, State.PAUSED), (StateStore.drop, State.DROPPED)], ids=["paused", "dropped"]
)
def test_what_people_paused_or_dropped_stays_so_though_its_source_makes_it_anew(
    store: StateStore, tell: Callable[[StateStore, str], object], state: State
) -> None:
    """Rows of the new table went to the lake, which a person had told to wait."""
    store.register([table("t")])
    tell(store, "s.t")
    for table_id in "23":
        store.register([table("t", table_id=table_id)])
        *_, new = (status.table for status in store.snapshot())
        assert (new.table_id, new.state) == (table_id, state)
    assert store.acquire(A, 9, 30) == ()
    assert store.resume("s.t") == ("s.t",)
    store.register([table("t", table_id="4")])
    assert [lease.table.table_id for lease in store.acquire(A, 9, 30)] == ["4"], "nobody has paused it again"


def test_of_tables_of_one_name_that_one_goes_on_which_the_source_listed_last(store: StateStore) -> None:
    for table_id in "12312":
        store.register([table("t", table_id=table_id)])
    assert [(status.table.error or "")[:35] for status in store.snapshot()] == [
        "the source's table was recreated: i",
        "the source has this table again: it",
        "",
    ]
    assert store.resume("s.*") == ("s.t",)
    assert [status.table.state for status in store.snapshot()] == [State.RECREATED, State.SCHEDULED, State.NEW]
    names = one_per_name(store.snapshot())
    assert [each.table.table_id for each in names] == ["3"]  # until a worker has listed the tables
    store.register([table("t", table_id="2")])
    assert [each.table.table_id for each in one_per_name(store.snapshot())] == ["2"]
    store.pause("s.t")
    store.register([table("t", table_id="3")])
    assert store.resume("s.t") == ("s.t",)
    states = {status.table.table_id: status.table.state for status in store.snapshot()}
    assert states == {"1": State.RECREATED, "2": State.PAUSED, "3": State.SCHEDULED}, "its source has no table 2 now"


def test_the_newest_rounds_of_a_recreated_table_are_shown_first(
    store: StateStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for table_id in "12":
        clock.pass_seconds(60)
        store.register([table("t", table_id=table_id)])
        store.finish(store.acquire(A, 1, 30)[0], Success())
    monkeypatch.setattr(cli, "opened_store", lambda _: nullcontext(store))
    cli.rounds(Path("service.yaml"), "s.t", limit=1, json=True)
    assert [each["fence"] for each in json.loads(capsys.readouterr().out)] == [2]


def test_another_target_stops_the_table(store: StateStore) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success(epoch=3, offsets="{}"))
    assert store.register([table("t", target="lake/other")]).moved == ("s.t",)
    got = row(store, "t")
    assert (got.state, got.offsets, got.epoch) == (State.STOPPED, None, None)
    assert "it went to f lake/t as pipeline 't'" in got.error
    assert "lake/other" in got.error
    assert store.register([table("t", target="lake/other")]).moved == ()
    store.resume("s.t")
    assert store.acquire(A, 1, 30)[0].table.target == "lake/other"


def test_another_warehouse_stops_a_table_that_has_rows_in_the_first(store: StateStore, tmp_path: Path) -> None:
    """All was read again into the new place, and nobody was told."""
    store.register([table("t"), table("new", warehouse="/lake")])
    (lease,) = [each for each in store.acquire(A, 2, 30) if each.table.source_table == "t"]
    store.finish(lease, Success(epoch=3, offsets="{}"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to("lake")
    new = table("new", warehouse="/lake")
    for known in (None, f"{tmp_path}/lake", None, f"{tmp_path}/link"):
        assert store.register([table("t", warehouse=known), new]) == RegistrationResult(), "one place, or unknown"
    assert row(store, "t").warehouse == f"{tmp_path}/link"
    moved = [table("t", warehouse="s3://lake"), table("new", warehouse="s3://lake")]
    assert store.register(moved).moved == ("s.new", "s.t"), "a round of the other may put rows there just now"
    got = row(store, "t")
    assert (got.state, got.epoch, got.warehouse) == (State.STOPPED, None, "s3://lake")
    assert f"it went to f lake/t in {tmp_path}/link as pipeline 't'" in got.error
    assert "the service's file now says f lake/t in s3://lake as 't'" in got.error
    assert "If the warehouse was moved as a whole, `laketier service resume FILE '*'` resumes all" in got.error
    assert "also those that were paused or dropped by hand" in got.error
    store.resume("s.t")
    assert store.register(moved) == RegistrationResult()
    assert store.register([table("t", warehouse="s3://other"), moved[1]]).moved == (), "it has no rows there yet"


def test_commands(store: StateStore, clock: Clock) -> None:
    store.register([table("a"), table("b")])
    (lease,) = store.acquire(A, 1, 30)
    assert store.pause("s.*") == ("s.a", "s.b")
    assert [status.table.state for status in store.snapshot()] == [State.TIERING, State.PAUSED]
    store.finish(lease, Success(epoch=1, offsets="{}"))
    clock.pass_seconds(1_000)
    assert store.acquire(A, 9, 30) == ()
    with pytest.raises(IllegalTransition, match="PAUSED can't be made due"):
        store.retier("s.a")
    assert store.resume("s.a") == ("s.a",)
    (lease,) = store.acquire(A, 9, 30)
    assert store.drop("s.a") == ("s.a",)
    with pytest.raises(LeaseLost):
        store.release(lease)
    store.register([table("a"), table("b")])
    assert row(store, "a").state is State.DROPPED, "the source has it, but a person said no"
    with pytest.raises(IllegalTransition):
        store.pause("s.a")
    with pytest.raises(TableNotFound, match="no table matches 'a'"):
        store.pause("a")
    assert store.resume("*") == ("s.a", "s.b")
    assert names(store.acquire(A, 9, 30)) == ["a", "b"]


def test_a_resume_of_all_where_none_waits_is_no_mistake(store: StateStore) -> None:
    store.register([table("a"), table("b")])
    leases = store.acquire(A, 2, 30)
    assert store.resume("*") == ()
    store.fail(leases[0], "x", retryable=True)
    assert store.resume("s.*") == ()
    with pytest.raises(IllegalTransition, match=r"FAILED.*`laketier service retier`"):
        store.resume("s.a")
    with pytest.raises(IllegalTransition, match="TIERING can't be resumed"):
        store.resume("s.b")


def test_a_table_can_be_made_due(store: StateStore) -> None:
    store.register([table("t")])
    store.finish(store.acquire(A, 1, 30)[0], Success())
    assert store.acquire(A, 1, 30) == ()
    assert store.retier("s.t") == ("s.t",)
    (lease,) = store.acquire(A, 1, 30)
    with pytest.raises(IllegalTransition, match="can't be made due"):
        store.retier("s.t")
    store.fail(lease, "x", retryable=True)
    store.retier("s.t")
    assert names(store.acquire(A, 1, 30)) == ["t"]
