"""The state store on a real PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import text

from laketier.service.schedule import State
from laketier.service.state import (
    Failure,
    IndexFigures,
    LeaseLost,
    Registration,
    StateError,
    StateStore,
    StateUnavailable,
    Success,
    Worker,
)
from laketier.service.state.database import Database
from laketier.service.state.tables import METADATA
from laketier.spi.clocks import shifted
from laketier_verification.postgresql import PostgreSQL

A = Worker("a", "here", 1, "0")
B = Worker("b", "there", 2, "0")


@pytest.fixture
def url(server: PostgreSQL) -> str:
    return server.new_database()


def tables(count: int) -> list[Registration]:
    return [
        Registration(source="s", table=f"t{n}", table_id="1", format="f", target=f"t{n}", pipeline=f"t{n}")
        for n in range(count)
    ]


def test_the_life_of_tables(url: str) -> None:
    now = [1_000_000]
    with StateStore.open(url, clock=lambda: now[0]) as store:
        store.register(tables(4))
        assert store.heartbeat(A, (), 30) == ()
        a, b, c, d = store.acquire(A, 9, 30)
        assert len(store.heartbeat(A, [a, b, c, d], 30)) == 4
        assert (
            store.finish_all([(a, Success(epoch=1, rows=5)), (b, Failure("x", True)), (c, Failure("y", False))]) == ()
        )
        store.finish_all([(a, Success(epoch=1, rows=5))])
        now[0] += 31_000
        taken = store.acquire(B, 9, 30)
        assert [(lease.table.source_table, lease.fence) for lease in taken] == [("t1", 2)]
        with pytest.raises(LeaseLost):
            store.finish(d, Success())
        assert store.pause("s.t1") == ("s.t1",)
        store.release(taken[0])
        (last,) = store.acquire(B, 9, 30)
        assert (last.table.source_table, last.fence, last.table.suspect, last.table.alone) == ("t3", 2, True, True)
        store.finish(last, Success(force_completed=True))
        states = [status.table.state for status in store.snapshot()]
        assert states == [State.SCHEDULED, State.PAUSED, State.STOPPED, State.PENDING]
        assert store.prune(1) == 2
        assert len(store.workers()) == 1
        assert store.register(tables(3)[1:]).dropped == ("s.t0", "s.t3")


@pytest.mark.parametrize("days", [-10, 10])
def test_workers_go_by_the_databases_clock(url: str, days: int) -> None:
    """However far off their own are, nobody takes a table from another who lives, and none is due too late."""
    with StateStore.open(url) as right, StateStore.open(url) as wrong:
        right.register(tables(2))
        (first,) = right.acquire(A, 1, 30)
        with shifted(days * 86_400_000):
            assert abs(wrong.now() - right.now()) < 60_000
            (second,) = wrong.acquire(B, 2, 30)
            assert second.table.source_table != first.table.source_table
            assert wrong.heartbeat(B, [second], 30)
            wrong.finish(second, Success(epoch=1))
        right.finish(first, Success(epoch=1))
        due = [status.table.due_at - right.now() for status in right.snapshot()]
        assert max(due) - min(due) < 60_000


def test_a_freshness_of_ten_years_and_the_last_priorities_fit(url: str) -> None:
    """In ms, a month is more than the column's type holds."""
    with StateStore.open(url) as store:
        store.register([replace(tables(1)[0], freshness_seconds=3650 * 86_400, priority=2**31 - 1)])
        (lease,) = store.acquire(A, 1, 30)
        store.finish(lease, Success(epoch=0))
        assert store.acquire(A, 1, 30) == ()


def test_a_restart_of_the_server_is_a_state_error_and_no_more(server: PostgreSQL, url: str) -> None:
    with StateStore.open(url) as store:
        store.register(tables(2))
        first, second = store.acquire(A, 2, 30)
        server.stop()
        try:
            for call in (
                lambda: store.finish(first, Success(epoch=1)),
                lambda: store.acquire(A, 2, 30),
                lambda: store.heartbeat(A, [first], 30),
                store.snapshot,
                lambda: StateStore.open(url),
            ):
                with pytest.raises(StateError, match="did not answer") as caught:
                    call()
                assert server.password not in str(caught.value)
                assert "laketier:***@127.0.0.1" in str(caught.value)
        finally:
            server.start()
        assert store.heartbeat(A, [first, second], 30)[0].fence == first.fence
        store.finish(first, Success(epoch=1))
        store.finish(second, Success(epoch=1))
        assert [status.table.fence for status in store.snapshot()] == [1, 1]
        server.stop()
        server.start()
        assert len(store.snapshot()) == 2, "a restart between two calls is not even noticed"


def test_an_error_of_any_text_is_stored(url: str) -> None:
    with StateStore.open(url) as store:
        store.register(tables(1))
        (lease,) = store.acquire(A, 1, 30)
        store.fail(lease, "bytes \0 \udcff of kafka://u:hush@broker:9092/x", retryable=False)
        assert store.snapshot()[0].table.error == "bytes \\0 \\udcff of kafka://u:***@broker:9092/x"


def test_a_restart_within_a_transaction_undoes_it(server: PostgreSQL, url: str) -> None:
    with StateStore.open(url) as store:
        store.register(tables(1))
        (lease,) = store.acquire(A, 1, 30)

        def restart() -> float:
            server.stop()
            server.start()
            return 0

        # The clock is asked when the transaction has begun.
        store._clock = restart  # type: ignore[assignment]
        with pytest.raises(StateError, match="did not answer"):
            store.heartbeat(A, [lease], 30)
        store._clock = lambda: lease.deadline
        assert store.workers() == ()
        assert store.heartbeat(A, [lease], 30)[0].deadline == lease.deadline + 30_000


def test_a_connection_that_the_server_ended_is_no_refusal(url: str) -> None:
    """As of a worker that was stopped within a transaction: what it then wants to store may be stored again."""
    database = Database(url)

    def stand_still() -> None:
        with database.write() as connection, psycopg.connect(url, autocommit=True) as other:
            connection.execute(text("SET idle_in_transaction_session_timeout = 1"))
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
                pass
            connection.execute(text("SELECT 1"))

    with pytest.raises(StateUnavailable, match="idle-in-transaction"):
        stand_still()
    database.close()


def test_a_wrong_password_is_told_without_it(server: PostgreSQL, url: str) -> None:
    with pytest.raises(StateError, match="password authentication failed") as caught:
        StateStore.open(url.replace(server.password, "wrong-guess"))
    assert "wrong-guess" not in str(caught.value)


def test_a_database_that_can_not_be_written_is_told_at_the_start(url: str) -> None:
    """`laketier serve` began all the same, and warned for ever."""
    StateStore.open(url).close()
    database = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE reader_{database} LOGIN PASSWORD 'reads'")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_{database}")
    host = url.partition("@")[2]
    with (
        StateStore.open(f"postgresql://reader_{database}:reads@{host}") as store,
        pytest.raises(StateError, match=r"permission denied .* the rights of its user"),
    ):
        store.check()
    with StateStore.open(url) as store:
        store.check()


def test_rights_that_no_worker_uses_are_not_asked_for(url: str) -> None:
    """An ended round is changed by nobody, and the versions are looked at alone."""
    StateStore.open(url).close()
    database = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE worker_{database} LOGIN PASSWORD 'works'")
        connection.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO worker_{database}")
        connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO worker_{database}")
        for name in ("tiering_tables", "tiering_workers", "tiering_upkeep"):
            connection.execute(f"GRANT UPDATE ON {name} TO worker_{database}")
    with StateStore.open(f"postgresql://worker_{database}:works@{url.partition('@')[2]}") as store:
        store.check()
        store.register(tables(1))
        store.heartbeat(A, [], 30)
        store.finish(store.acquire(A, 1, 30)[0], Success(epoch=1))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"REVOKE INSERT ON tiering_rounds FROM worker_{database}")
        with pytest.raises(StateError, match="permission denied for table tiering_rounds"):
            store.check()


def test_a_server_that_lets_nobody_write_is_told_from_missing_rights(url: str) -> None:
    StateStore.open(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on")
    with StateStore.open(url) as store:
        store.close()  # its next connection is a new one
        with pytest.raises(StateError, match=r"read-only transaction.*this one is a replica"):
            store.check()


def test_tables_of_the_state_that_are_gone_are_told_with_the_way_out(url: str) -> None:
    with StateStore.open(url) as store:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        with pytest.raises(StateError, match="start all workers again"):
            store.heartbeat(A, [], 30)
        StateStore.open(url).close()
        assert store.heartbeat(A, [], 30) == ()


def test_a_newer_database_is_refused(url: str) -> None:
    with StateStore.open(url) as store, store._database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StateError, match="of a newer laketier"):
        StateStore.open(url)


def test_many_may_migrate_at_once(url: str) -> None:
    opened: list[int] = []
    barrier = threading.Barrier(6)

    def start() -> None:
        barrier.wait()
        with StateStore.open(url) as store:
            opened.append(len(store.snapshot()))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [0] * 6


def test_the_migrations_make_what_the_code_expects(server: PostgreSQL, url: str) -> None:
    def made(url: str) -> set[tuple[str, ...]]:
        engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.connect() as connection:
            columns = connection.execute(
                text(
                    "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
                    "WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
                )
            ).all()
            indexes = connection.execute(
                text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename LIKE 't%'")
            ).all()
        engine.dispose()
        return {tuple(row) for row in (*columns, *indexes)}

    StateStore.open(url).close()
    expected = server.new_database()
    engine = sqlalchemy.create_engine(expected.replace("postgresql://", "postgresql+psycopg://"))
    METADATA.create_all(engine)
    engine.dispose()
    assert made(url) == made(expected) != set()


def test_the_upkeep_of_indexes(url: str) -> None:
    now = [1_000_000]
    with StateStore.open(url, clock=lambda: now[0]) as store:
        store.register(tables(2))
        for lease in store.acquire(A, 9, 30):
            store.finish(lease, Success(epoch=1, rows=5))
        names = {"s.t0", "s.t1"}
        first, second = store.take_upkeep(A, names, 30), store.take_upkeep(B, names, 30)
        assert first is not None
        assert second is not None
        assert {first.name, second.name} == names
        assert store.take_upkeep(A, names, 30, due=False) is None
        assert store.renew_upkeep(first, 60)
        store.end_upkeep(second, [IndexFigures("x", 2, 9, 1)], 3, failed=False, again_seconds=50)
        now[0] += 31_000
        assert store.take_upkeep(B, names, 30) is None
        told = [status.upkeep for status in store.snapshot()]
        assert [each.indexes for each in told if each is not None and each.steps_total == 3] == [
            (IndexFigures("x", 2, 9, 1),)
        ]
        now[0] += 20_000
        again = store.take_upkeep(B, names, 30)
        assert again is not None
        assert again.name == second.name, "due before the other's lease ran out"
