"""The dead letters that the page shows, of every format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.config import LakeConfig
from laketier.dead_letters.records import DeadLetterState
from laketier.dead_letters.replay import replay
from laketier.registry import configure, open_log_source
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.service.state import StateStore
from laketier.service.web.dead_letters import read_dead_letters
from laketier_verification.lines import LinesTable
from service_page import served
from state_tables import table

DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(2)
    yield engine
    engine.close()


@pytest.fixture(params=["delta", "iceberg", "lance", "localfile"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> LakeConfig:
    keys = {"format": request.param, "warehouse": str(tmp_path / "lake"), "table": "db.t", "pipeline": "tests.t"}
    return configure({f"lake.{key}": value for key, value in keys.items()})


def _round(source: LinesTable, config: LakeConfig, engine: LocalEngine) -> None:
    log = open_log_source("lines", {"path": str(source.root)}, name="lines", origin="the test").open("t")
    made = LogRound(log, config, DEAD)
    made.finish(engine.run(list(made.plan())))


def test_the_newest_few_are_read_and_the_rest_is_counted(
    config: LakeConfig, tmp_path: Path, engine: LocalEngine
) -> None:
    assert read_dead_letters(config) is None
    source = LinesTable(tmp_path / "logs", "t").create()
    source.append(1)
    source.append_raw(*(f"<script>{number}" for number in range(5)))
    _round(source, config, engine)
    source.append_raw(*(f"<script>{number}" for number in range(5, 9)))
    _round(source, config, engine)
    found = read_dead_letters(config, shown=3)
    assert found is not None
    assert (found.table, found.looked_at, found.all_seen) == ("db.t__dead_letters", 9, True)
    assert [(dead_letter.bucket, dead_letter.offset) for dead_letter in found.newest] == [("0", 9), ("0", 8), ("0", 7)]
    assert all(dead_letter.error for dead_letter in found.newest)

    capped = read_dead_letters(config, shown=3, most=6)
    assert capped is not None
    assert (capped.looked_at, capped.all_seen, len(capped.newest)) == (6, False, 3)

    with StateStore.open(f"sqlite:///{tmp_path}/state.db") as store:
        store.register([table("t")])
        with served(store, dead_letter_config_of=lambda name: config if name == "s.t" else None) as page:
            assert 'href="/tables/1/dead-letters"' in page.get("/tables/1").text
            shown = page.get("/tables/1/dead-letters")
    assert shown.status == 200
    assert shown.text.count('<td data-head="offset"') == 9
    assert "<script>8" not in shown.text
    assert "9 in <b>db.t__dead_letters</b>" in shown.text
    assert "9 open" in shown.text


def test_replayed_ones_are_told_apart(config: LakeConfig, tmp_path: Path, engine: LocalEngine) -> None:
    source = LinesTable(tmp_path / "logs", "t").create()
    source.append_raw('{"id": "1"}', "poison")
    _round(source, config, engine)
    source.describe(ids_as_text=True)
    replay(config, open_log_source("lines", {"path": str(source.root)}, name="lines", origin="the test").open("t"))
    found = read_dead_letters(config)
    assert found is not None
    assert [(each.offset, each.state) for each in found.newest] == [
        (1, DeadLetterState.OPEN),
        (0, DeadLetterState.REPLAYED),
    ]
    assert found.states == {DeadLetterState.OPEN: 1, DeadLetterState.REPLAYED: 1}


def test_a_lake_that_does_not_answer_is_told(config: LakeConfig, tmp_path: Path, engine: LocalEngine) -> None:
    source = LinesTable(tmp_path / "logs", "t").create()
    source.append_raw("no json")
    _round(source, config, engine)
    for file in (tmp_path / "lake").rglob("*"):
        if file.is_file() and "dead_letters" in str(file):
            file.write_bytes(b"damaged")
    with StateStore.open(f"sqlite:///{tmp_path}/state.db") as store:
        store.register([table("t")])
        with served(store, dead_letter_config_of=lambda _: config) as page:
            answer = page.get("/tables/1/dead-letters")
    assert answer.status == 503
    assert "The lake did not answer" in answer.text
