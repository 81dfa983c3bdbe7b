"""Service files: what fits, and what is said of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from laketier.config.job import parse_job
from laketier.config.references import resolved
from laketier.config.service import parse_service
from laketier.rounds.configured import configured_tables
from laketier.spi import ConfigError

GOOD: dict[str, Any] = {
    "state": "sqlite:///s.db",
    "sources": {"clicks": {"type": "kafka"}},
    "defaults": {"sink": {"lake.format": "delta", "lake.warehouse": "/lake"}, "freshness": "90 s"},
    "tables": [{"source": "clicks", "include": ["big_*"], "freshness": "5 min", "priority": 3}, {"source": "clicks"}],
}


def _tables(document: dict[str, Any], *names: str) -> dict[str, Any]:
    service = parse_service(document, origin="s.yaml")
    return {table.key: table for table in configured_tables(service, {"clicks": names}, origin="s.yaml")}


def test_the_first_rule_that_fits_decides_and_the_rest_comes_from_the_defaults() -> None:
    tables = _tables(GOOD, "big_one", "other")
    assert (tables["clicks.big_one"].freshness_seconds, tables["clicks.big_one"].priority) == (300, 3)
    assert (tables["clicks.other"].freshness_seconds, tables["clicks.other"].priority) == (90, 0)
    assert str(tables["clicks.other"].config.table) == "clicks.other"
    assert tables["clicks.other"].pipeline == "laketier.clicks.other"


def test_keys_are_given_to_all_tables_or_one() -> None:
    keyed = {"primary-key": ["id"], "change-column": "op"}
    rules = [{"source": "clicks", "include": ["big_*"], "primary-key": []}, {"source": "clicks"}]
    tables = _tables(GOOD | {"defaults": GOOD["defaults"] | keyed, "tables": rules}, "big_one", "other")
    assert (tables["clicks.other"].primary_key, tables["clicks.other"].change_column) == (("id",), "op")
    assert tables["clicks.big_one"].primary_key == (), "none at all"
    assert _tables(GOOD, "other")["clicks.other"].primary_key is None, "the source's"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": [{"source": "clicks", "primary-key": "id"}]}, "tables.0.primary-key = 'id'"),
        ({"stat": "x"}, "unknown key 'stat'. Did you mean 'state'?"),
        ({"sources": {"clicks": {"type": "kafka", "option": {}}}}, "Did you mean 'sources.clicks.options'?"),
        ({"tables": [{"source": "clicks", "round-limit": "1 s"}]}, "unknown key 'tables.0.round-limit'"),
        (
            {"tables": [{"source": "click"}]},
            "'click' is not one of the sources. Did you mean 'clicks'",
        ),
        ({"tables": []}, "tables"),
        ({"tables": [{"source": "clicks", "freshness": "3"}]}, "write a duration, for example 30s"),
        ({"tables": [{"source": "clicks", "freshness": "500 ms"}]}, "tables.0.freshness is 0.5 s. Set it to whole"),
        ({"tables": [{"source": "clicks", "on-bad-record": "ignore"}]}, "tables.0.on-bad-record = 'ignore'"),
        ({"name": "a b"}, "name = 'a b' does not fit"),
        ({"defaults": {"priority": 10**20}}, f"defaults.priority = {10**20} does not fit"),
        ({"defaults": {"priority": -(2**31) - 1}}, "greater than or equal to -2147483648"),
        ({"tables": [{"source": "clicks", "max-offsets-per-round": 2**63}]}, "max-offsets-per-round"),
        ({"metrics-tables": 2**31}, "metrics-tables"),
        ({"defaults": {"freshness": "99999999999999999999 d"}}, "because that is more than ten years"),
        ({"grace": "9" * 400 + " d"}, "because that is more than ten years"),
        ({"discover-every": "11 years"}, "write a duration"),
        ({"lease": "0.1ms"}, "lease is 0.0001 s. Set it to 1 s or more"),
        ({"sources": {"clicks": {"type": "kafka", "options": "password=hunter2"}}}, "options = (a text) does not fit"),
        ({"state": {"url": "postgresql://u:hunter2@h/d"}}, "state = (keys and values) is not text"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_service(GOOD | change, origin="s.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("s.yaml: ")
    assert "hunter2" not in str(caught.value)


SECRET = "hunter2hunter2"
FROM_ENVIRONMENT = [
    {"lease": "${S}"},
    {"state": ["${S}"]},
    {"defaults": {"priority": "${S}"}},
    {"defaults": {"on-bad-record": "x${S}"}},
    {"sources": {"clicks": {"type": "kafka", "options": "${S}"}}},
    {"sources": {"clicks": "${S}"}},
]


@pytest.mark.parametrize("change", FROM_ENVIRONMENT, ids=str)
def test_what_comes_from_the_environment_is_never_shown(change: dict[str, Any]) -> None:
    values = resolved(GOOD | change, where="s.yaml", environment={"S": SECRET})
    with pytest.raises(ConfigError, match=r"does not fit|is not (text|an integer|one of)") as caught:
        parse_service(values, origin="s.yaml")
    assert SECRET not in str(caught.value)


def test_a_service_shows_no_secret_and_takes_them_from_the_environment() -> None:
    secret = {
        "state": "postgresql://u:${S}@h/d",
        "sources": {"clicks": {"type": "${T}", "options": {"sasl": {"password": "${S}"}}}},
        "defaults": {"on-bad-record": "${F}", "sink": {"lake.token": "${S}"}, "read": {"key": "${S}"}},
        "spark": {"spark.hadoop.fs.s3a.secret.key": "${S}"},
    }
    names = {"S": SECRET, "T": "kafka", "F": "fail"}
    service = parse_service(resolved(GOOD | secret, where="s.yaml", environment=names), origin="s.yaml")
    assert service.state == f"postgresql://u:{SECRET}@h/d"
    assert (service.sources["clicks"].type, service.defaults.on_bad_record) == ("kafka", "fail")
    assert SECRET not in f"{service!r} {service}"


def test_a_job_shows_no_secret() -> None:
    files = {"path": "in", "options": {"key": SECRET}}
    job = parse_job({"source": {"files": files}, "sink": {"lake.token": SECRET}, "spark": {"k": SECRET}}, origin="j")
    table = parse_job({"source": {"table": {"lake.token": SECRET}}, "sink": {}}, origin="j")
    assert SECRET not in f"{job!r} {job} {table!r}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": [{"source": "clicks", "target": "db.all"}]}, "clicks.a and clicks.b would both go to db.all"),
        ({"tables": [{"source": "clicks", "target": "db.{topic}"}]}, "target = 'db.{topic}' does not fit"),
        ({"tables": [{"source": "clicks", "sink": {"lake.pipeline": "p"}}]}, "lake.pipeline is not for `sink`"),
    ],
)
def test_what_does_not_fit_the_tables_that_there_are_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _tables(GOOD | change, "a", "b")
    assert message in str(caught.value)


ODD = ["my table", "-x", "größe", "a/b\nc", "\N{SNOWMAN}", "x" * 249, "ok.ay", "ok"]


def test_tables_may_have_any_name() -> None:
    found = _tables(GOOD, *ODD)
    assert [found[f"clicks.{name}"].name for name in ODD] == ODD
    assert len({table.pipeline for table in found.values()}) == len({str(t.config.table) for t in found.values()}) == 8
    assert found["clicks.ok"].pipeline == "laketier.clicks.ok"
    assert found["clicks.ok.ay"].pipeline == "laketier.clicks.ok.ay"
    assert str(found["clicks.-x"].config.table) == "clicks._x"


@pytest.mark.parametrize(
    ("names", "stays", "told"),
    [
        (["a b", "a_b", "c"], ["a_b", "c"], "clicks.a b and clicks.a_b would both go to clicks.a_b"),
        (["a b", "a/b", "c"], ["c"], "clicks.a b and clicks.a/b would both go to clicks.a_b"),
    ],
)
def test_only_tables_whose_names_clash_are_refused(names: list[str], stays: list[str], told: str) -> None:
    refused: dict[str, Any] = {}
    service = parse_service(GOOD, origin="s.yaml")
    found = configured_tables(service, {"clicks": names}, origin="s.yaml", refused=refused)
    assert [table.name for table in found] == stays
    assert refused.keys() == {f"clicks.{name}" for name in names if name not in stays}
    assert all(told in str(error) for _, error in refused.values())
    with pytest.raises(ConfigError, match=told):
        _tables(GOOD, *names)
