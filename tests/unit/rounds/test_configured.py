"""The tables of a service file: which there are, with which settings, and which of them a name means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laketier.config.service import parse_service
from laketier.registry import open_log_source
from laketier.rounds import LogRoundSettings, OnBadRecordPolicy, OnExpired, configured
from laketier.rounds.configured import ConfiguredTable, configured_tables, excludes_all, rule_problems, unmatched
from laketier.rounds.configured_logs import list_configured_tables, open_configured_table, open_log, open_sources
from laketier.rounds.keyed import KeyedLog
from laketier.spi import ConfigError, PluginNotFound
from laketier_verification.lines import LinesTable

SINK = {"lake.format": "localfile", "lake.warehouse": "/lake"}


def _document(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    sources = {"clicks": {"type": "lines", "options": {"path": "/logs"}}}
    tables = [{"source": "clicks"} | rule for rule in rules or ({},)]
    return {"state": "sqlite:///s.db", "sources": sources, "defaults": {"sink": SINK}, "tables": tables} | more


def _tables(document: dict[str, Any], *names: str) -> list[ConfiguredTable]:
    service = parse_service(document, origin="s.yaml")
    listed = dict.fromkeys(document["sources"], names)
    return configured_tables(service, listed, origin="s.yaml")


def _one(rule: dict[str, Any], defaults: dict[str, Any] | None = None) -> ConfiguredTable:
    [table] = _tables(_document(rule, defaults={"sink": SINK} | (defaults or {})), "orders")
    return table


SETTINGS: dict[str, Any] = {
    "freshness": "5 min",
    "priority": 3,
    "max-offsets-per-round": 10,
    "on-bad-record": "dead-letter",
    "on-expired": "skip",
    "primary-key": ["id"],
    "change-column": "op",
    "target": "lake.{table}",
    "read": {"columns": {"id": "int64"}},
}


@pytest.mark.parametrize("where", ["rule", "defaults"])
def test_a_table_has_the_settings_of_its_rule_or_of_the_defaults(where: str) -> None:
    table = _one(SETTINGS) if where == "rule" else _one({}, SETTINGS)
    assert (table.source, table.name, table.key, table.pipeline) == (
        "clicks",
        "orders",
        "clicks.orders",
        "laketier.clicks.orders",
    )
    assert (table.priority, table.primary_key, table.change_column) == (3, ("id",), "op")
    assert (str(table.config.table), dict(table.read)) == ("lake.orders", {"columns.id": "int64"})
    assert table.leaves_out_bad_records
    assert table.round_settings(7) == LogRoundSettings(
        7, 10, OnExpired.SKIP, OnBadRecordPolicy.DEAD_LETTER, within=300.0
    )


def test_without_settings_a_table_stops_at_what_it_can_not_read() -> None:
    table = _one({})
    assert (table.priority, table.primary_key, table.change_column, dict(table.read)) == (0, None, None, {})
    assert not table.leaves_out_bad_records
    assert table.round_settings() == LogRoundSettings(0, None, OnExpired.FAIL, OnBadRecordPolicy.FAIL, within=180.0)
    assert _one({"on-bad-record": "drop"}).leaves_out_bad_records


def test_what_a_rule_says_goes_before_the_defaults_key_by_key() -> None:
    table = _one(
        {"sink": {"lake": {"warehouse": "/mine"}}, "read": {"path": {"deep": "mine"}}},
        {"read": {"path": {"deep": "theirs", "more": "x"}}},
    )
    assert table.config.warehouse == "/mine"
    assert dict(table.read) == {"path.deep": "mine", "path.more": "x"}


def test_the_defaults_may_be_nested_too() -> None:
    [table] = _tables(_document(defaults={"sink": {"lake": {"format": "localfile", "warehouse": "/deep"}}}), "orders")
    assert table.config.warehouse == "/deep"


def test_patterns_choose_by_the_whole_name_and_its_case() -> None:
    rules = ({"include": ["big_?", "Big*"], "exclude": ["*_x"]}, {"include": ["small"]})
    names = ("big_a", "big_x", "Bigger", "bigger", "small", "smaller", "big_[a]")
    assert [table.name for table in _tables(_document(*rules), *names)] == ["big_a", "Bigger", "small"]
    service = parse_service(_document(*rules, {"include": ["a*", "b*"]}), origin="s.yaml")
    assert unmatched(service.tables[2], ["a1", "c"]) == ["b*"]
    assert unmatched(service.tables[2], []) == ["a*", "b*"]
    assert excludes_all(service.tables[0], ["big_x", "small"])
    assert not excludes_all(service.tables[0], ["big_x", "big_a"])


def test_a_source_has_a_plain_name_in_tables_and_pipelines() -> None:
    document = _document() | {"sources": {"c!k": {"type": "lines", "options": {"path": "/logs"}}}}
    document["tables"] = [{"source": "c!k"}]
    service = parse_service(document, origin="s.yaml")
    [table] = configured_tables(service, {"c!k": ["t"]}, origin="s.yaml")
    assert (str(table.config.table), table.pipeline) == ("c_k.t", "laketier.c_k.t")


@pytest.mark.parametrize(
    "target",
    [
        *("{topic}.t", "{0}.t", "{", "db.}", "db.{table!x}", "db.{{table}}"),
        *("db.{table.upper}", "db.{table.x}", "db.{table[x]}", "db.{table[0]}", "db.{table:9999999999999999}"),
    ],
)
def test_a_target_that_is_no_pattern_is_named(target: str) -> None:
    """Names stand in it whole: with the first letter of each, a table would swallow all that begin alike."""
    with pytest.raises(ConfigError, match=r"s\.yaml, tables\.0: target = .* does not fit.*Use \{source\}"):
        _one({"target": target})


@pytest.mark.parametrize(
    ("rule", "error", "told"),
    [
        ({"sink": {"lake.formt": "x"}}, ConfigError, r"s\.yaml, tables\.0: unknown key 'lake\.formt'"),
        ({"sink": {"lake.format": "paimon"}}, PluginNotFound, r"^s\.yaml, tables\.0, sink\.lake\.format: "),
        ({"target": "no-database-"}, ConfigError, r"^s\.yaml, tables\.0, lake\.table: "),
        ({"sink": {"lake.warehouse": " "}}, ConfigError, r"^s\.yaml, tables\.0: the location is empty"),
        ({"sink": {"lake.epoch": "3"}}, ConfigError, r"^s\.yaml, tables\.0: lake\.epoch is not for `sink`"),
    ],
)
def test_what_does_not_fit_says_of_which_rule_it_is(rule: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        _one(rule)


def test_an_error_of_the_format_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who knows the format by name does not load it for each table."""
    error: Exception = ConfigError("no good", where="the format")

    def refuse(name: str) -> None:
        raise error

    monkeypatch.setattr(configured, "load_format", refuse)
    assert _one({}).config.format == "localfile"
    with pytest.raises(ConfigError, match=r"^the format: no good"):
        _one({"sink": {"lake.format": "paimon"}})
    error = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        _one({"sink": {"lake.format": "paimon"}})


def test_a_bug_is_no_fault_of_a_rule(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    service = parse_service(_document(), origin="s.yaml")
    sources = open_sources(parse_service(json.loads(_file(logs).read_text()), origin="s.yaml"), origin="s.yaml")
    monkeypatch.setattr(type(sources["clicks"]), "check_table_options", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        rule_problems(service, 0, sources, origin="s.yaml")
    monkeypatch.setattr(configured, "configure", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        rule_problems(service, 0, {}, origin="s.yaml")


def test_settings_of_reading_may_be_nested_where_the_rule_is_wrong(logs: Path) -> None:
    read = {"columns": {"id": "int64"}}
    source = open_log_source("lines", {"path": str(logs / "logs")}, name="clicks", origin="s.yaml")
    wrong = {"target": "{topic}"}
    for document in (_document(wrong | {"read": read}), _document(wrong, defaults={"sink": SINK, "read": read})):
        flat = _document(wrong, defaults={"sink": SINK, "read": {"columns.id": "int64"}})
        found, expected = (
            [
                str(each)
                for each in rule_problems(parse_service(each, origin="s.yaml"), 0, {"clicks": source}, origin="s.yaml")
            ]
            for each in (document, flat)
        )
        assert found == expected


@pytest.mark.parametrize(
    ("source", "name", "pipeline"),
    [
        ("clicks", "a.b-c", "laketier.clicks.a.b-c"),
        ("clicks", "a b", "laketier.clicks.a_b.51d829d458af150e"),
        ("c!" * 30, "t" * 200, f"laketier.{'c_' * 16}.{'t' * 40}.fcf9343bb56c6ac5"),
    ],
)
def test_a_pipelines_name_stays_what_it_was(source: str, name: str, pipeline: str) -> None:
    """Under it the lake table keeps its watermark: with another one, a service would read the log anew."""
    document = _document() | {"sources": {source: {"type": "lines", "options": {"path": "/logs"}}}}
    document["tables"] = [{"source": source, "target": "db.t"}]
    service = parse_service(document, origin="s.yaml")
    [table] = configured_tables(service, {source: [name]}, origin="s.yaml")
    assert table.pipeline == pipeline


def test_a_table_without_a_name_has_one_in_the_lake() -> None:
    assert str(_tables(_document(), "")[0].config.table) == "clicks._"


def test_names_that_clash_are_told_with_the_table_that_stays() -> None:
    refused: dict[str, Any] = {}
    service = parse_service(_document(), origin="s.yaml")
    kept = configured_tables(service, {"clicks": ["a!b", "a b", "a_b"]}, origin="s.yaml", refused=refused)
    assert [table.name for table in kept] == ["a_b"]
    assert {name: str(error) for name, (_, error) in refused.items()} == {
        f"clicks.{name}": f"s.yaml: clicks.{name} and clicks.a_b would both go to clicks.a_b. "
        "Give them targets of their own: `target` may hold {source} and {table}."
        for name in ("a!b", "a b")
    }
    with pytest.raises(ConfigError, match=r"clicks.a b and clicks.d e would both go to db.all"):
        _tables(_document({"target": "db.all"}), "a b", "d e", "c")


def test_of_two_targets_that_meet_both_are_refused() -> None:
    """Whatever their names: which of them was meant, nobody knows."""
    refused: dict[str, Any] = {}
    service = parse_service(_document({"target": "db.all"}), origin="s.yaml")
    with pytest.raises(ConfigError, match=r"clicks\.a and clicks\.b would both go to db\.all"):
        configured_tables(service, {"clicks": ["a", "b"]}, origin="s.yaml", refused=refused)
    assert refused == {}


def test_tables_meet_only_in_one_warehouse_of_one_format() -> None:
    rules = [{"include": [name], "target": "db.t", "sink": {"lake.warehouse": f"/{name}"}} for name in ("a", "b", "c")]
    assert [table.name for table in _tables(_document(*rules), "a", "b", "c")] == ["a", "b", "c"]


# -- with logs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("orders", "users", "a b", "a_b"):
        LinesTable(tmp_path / "logs", name).create().append(1)
    return tmp_path


def _file(folder: Path, **more: Any) -> Path:
    options = {"path": str(folder / "logs")}
    document = _document(
        sources={"clicks": {"type": "lines", "options": options}, "others": {"type": "lines", "options": options}},
        defaults={"sink": {"lake.format": "localfile", "lake.warehouse": str(folder / "lake")}},
    )
    file = folder / "s.yaml"
    file.write_text(json.dumps(document | more))
    return file


def test_the_tables_of_a_file_are_listed_by_name(logs: Path) -> None:
    assert [table.key for table in list_configured_tables(_file(logs))] == [
        "clicks.a_b",
        "clicks.orders",
        "clicks.users",
    ]


@pytest.mark.parametrize("name", ["clicks.orders", "lake.orders"])
def test_a_table_is_opened_by_its_name_or_its_lake_tables(logs: Path, name: str) -> None:
    file = _file(logs, tables=[{"source": "clicks", "target": "lake.{table}"}])
    table, log = open_configured_table(file, name)
    assert (table.key, log.table.name) == ("clicks.orders", "orders")


def test_a_table_that_is_refused_or_not_there_is_told_so(logs: Path) -> None:
    file = _file(logs)
    with pytest.raises(ConfigError, match=r"a b and clicks\.a_b would both go to"):
        open_configured_table(file, "clicks.a b")
    with pytest.raises(
        ConfigError, match=r"no table 'clicks\.nothing'.*It has: clicks\.a_b, clicks\.orders, clicks\.users\."
    ):
        open_configured_table(file, "clicks.nothing")
    with pytest.raises(ConfigError, match=r"s\.yaml: the service has no table 'x'.*It has: none\."):
        open_configured_table(_file(logs, tables=[{"source": "clicks", "include": ["zzz"]}]), "x")


def test_of_many_tables_ten_are_named(logs: Path) -> None:
    for number in range(12):
        LinesTable(logs / "logs", f"t{number:02}").create()
    with pytest.raises(ConfigError) as caught:
        open_configured_table(_file(logs), "clicks.nothing")
    assert "clicks.t07." in str(caught.value)
    assert "clicks.t08" not in str(caught.value)


def test_a_lake_table_of_two_sources_must_be_named_by_source(logs: Path) -> None:
    rules = [
        {"source": source, "include": ["orders"], "target": "db.t", "sink": {"lake.warehouse": str(logs / source)}}
        for source in ("clicks", "others")
    ]
    file = _file(logs, tables=rules)
    with pytest.raises(ConfigError, match=r"'db\.t' is the lake table of clicks\.orders and of others\.orders.*Name"):
        open_configured_table(file, "db.t")
    assert open_configured_table(file, "others.orders")[0].source == "others"


def test_a_source_that_is_not_named_need_not_answer(logs: Path) -> None:
    sources = {
        "clicks": {"type": "lines", "options": {"path": str(logs / "logs")}},
        "others": {"type": "lines", "options": {"pth": "unknown"}},
    }
    file = _file(logs, sources=sources)
    assert open_configured_table(file, "clicks.orders")[0].key == "clicks.orders"
    with pytest.raises(ConfigError, match=r"s\.yaml, sources\.others"):
        open_configured_table(file, "lake.orders")


def test_a_key_that_the_file_gives_is_the_logs(logs: Path) -> None:
    service = parse_service(json.loads(_file(logs).read_text()), origin="s.yaml")
    sources = open_sources(service, origin="s.yaml")
    for rule, key, column in (
        ({}, (), None),
        ({"primary-key": ["id"]}, ("id",), None),
        ({"primary-key": ["id"], "change-column": "text"}, ("id",), "text"),
    ):
        log = open_log(_one(rule), sources)
        assert (log.table.primary_key, log.table.change_column) == (key, column)
        assert isinstance(log, KeyedLog) == bool(rule), "without either it is the source's own"
    assert open_log(_one({}), sources) is not open_log(_one({}), sources), "each is closed by who opened it"
    assert open_sources(service, origin="s.yaml")["clicks"] is not sources["clicks"]
    nested = _document() | {"sources": {"clicks": {"type": "lines", "options": {"pa": {"th": "/logs"}}}}}
    with pytest.raises(ConfigError, match=r"unknown key 'options\.pa\.th'"):
        open_sources(parse_service(nested, origin="s.yaml"), origin="s.yaml")
    with pytest.raises(ConfigError, match="needs a primary key"):
        open_log(_one({"change-column": "text"}), sources)


def test_all_faults_of_a_rule_are_told_at_once(logs: Path) -> None:
    source = open_log_source("lines", {"path": str(logs / "logs")}, name="clicks", origin="s.yaml")
    rule = {"target": "{topic}", "read": {"wrong": "x"}}
    service = parse_service(_document(rule, defaults={"sink": SINK, "read": {"worse": "y"}}), origin="s.yaml")
    found = rule_problems(service, 0, {"clicks": source}, origin="s.yaml")
    assert [type(each) for each in found] == [ConfigError, ConfigError]
    target, read = map(str, found)
    assert target.startswith("s.yaml, tables.0: target = ")
    assert "wrong" in read
    assert "worse" in read
    assert [str(each) for each in rule_problems(service, 0, {}, origin="s.yaml")] == [target]
    good = parse_service(_document({"read": {"wrong": "x"}}), origin="s.yaml")
    [only] = rule_problems(good, 0, {"clicks": source}, origin="s.yaml")
    assert "wrong" in str(only)
    assert rule_problems(parse_service(_document(), origin="s.yaml"), 0, {"clicks": source}, origin="s.yaml") == []


def test_a_file_and_its_source_are_looked_at_anew_each_time(logs: Path) -> None:
    before = [table.key for table in list_configured_tables(_file(logs))]
    LinesTable(logs / "logs", "later").create()
    assert [table.key for table in list_configured_tables(_file(logs))] == sorted([*before, "clicks.later"])
    assert open_configured_table(_file(logs), "clicks.orders")[0].priority == 0
    rules = [{"source": "clicks", "priority": 5, "primary-key": ["id"]}]
    table, log = open_configured_table(_file(logs, tables=rules), "clicks.orders")
    assert (table.priority, log.table.primary_key) == (5, ("id",))


def test_sources_that_were_listed_are_closed(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of them can't be listed."""
    file = _file(logs)
    source = open_log_source("lines", {"path": str(logs / "logs")}, name="lines", origin="the test").source
    closed: list[object] = []
    monkeypatch.setattr(type(source), "close", lambda self: closed.append(self))
    list_configured_tables(file)
    assert len(closed) == 2

    def refuse(_: object) -> list[str]:
        raise ConfigError("no answer")

    monkeypatch.setattr(type(source), "list_tables", refuse)
    with pytest.raises(ConfigError, match="no answer"):
        list_configured_tables(file)
    assert len(closed) == 4


def test_sources_that_nobody_gets_are_closed(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be processes. The log that is opened keeps its own."""
    file = _file(logs)
    source = open_log_source("lines", {"path": str(logs / "logs")}, name="lines", origin="the test").source
    closed: list[object] = []
    monkeypatch.setattr(type(source), "close", lambda self: closed.append(self))
    open_configured_table(file, "clicks.orders")
    assert closed == [], "the other one was not opened"
    lakes = [{"source": "clicks", "target": "lake.{table}"}]
    assert open_configured_table(_file(logs, tables=lakes), "lake.orders")[0].source == "clicks"
    assert len(closed) == 1, "whose table has that lake table is known once both are listed"
    closed.clear()
    file = _file(logs)
    for name, count in (("clicks.nothing", 3), ("clicks.a b", 1)):
        with pytest.raises(ConfigError):
            open_configured_table(file, name)
        assert len(closed) == count, name
        closed.clear()
    wrong = [{"source": "clicks", "change-column": "text"}]
    with pytest.raises(ConfigError, match="needs a primary key"):
        open_configured_table(_file(logs, tables=wrong), "clicks.orders")
    assert len(closed) == 1
    closed.clear()
    unknown = {
        "clicks": {"type": "lines", "options": {"path": str(logs / "logs")}},
        "others": {"type": "lines", "options": {"pth": "unknown"}},
    }
    with pytest.raises(ConfigError, match=r"sources\.others"):
        list_configured_tables(_file(logs, sources=unknown))
    assert len(closed) == 1
