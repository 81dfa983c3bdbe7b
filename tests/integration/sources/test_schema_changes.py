"""A lake table follows what becomes of its source's columns, as far as its format can; else it is refused clearly."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pytest

from kafka_logs import produce, source_at
from laketier.config import LakeConfig
from laketier.registry import load_format, open_lake
from laketier.rounds import LogRound, LogRoundResult
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import (
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    ScanRequest,
    SchemaChanged,
    TableLog,
    support_of,
)
from laketier.tables.scan import scan
from laketier.tiering import RoundOutcome
from laketier_kafka.mock_broker import KafkaBroker
from schema_registry import SchemaRegistry, framed

ID = {"name": "id", "type": "long"}
COUNT = {"name": "n", "type": "int"}
WIDE = {"name": "n", "type": "long"}
NAME = {"name": "name", "type": ["null", "string"], "default": None}
TITLE = {"name": "title", "type": ["null", "string"], "default": None, "aliases": ["name"]}
EXTRA = {"name": "extra", "type": ["null", "string"], "default": None}


@dataclass
class Evolving:
    """A topic whose producer changes its schema, and the lake table that the topic goes to."""

    broker: KafkaBroker
    topic: str
    registry: SchemaRegistry
    config: LakeConfig
    engine: LocalEngine
    ids: dict[str, int] = field(default_factory=dict)

    def register(self, *fields: dict[str, Any]) -> Any:
        schema = {"type": "record", "name": "Event", "fields": list(fields)}
        text = json.dumps(schema)
        self.ids[text] = self.registry.register(f"{self.topic}-value", text)
        return schema

    def produce(self, schema: Any, *rows: dict[str, Any]) -> None:
        values = []
        for row in rows:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
            values.append(framed(self.ids[json.dumps(schema)], stream.getvalue()))
        produce(self.broker.bootstrap, self.topic, values)

    def opened(self) -> TableLog:
        source = source_at(self.broker.bootstrap, **{"registry.url": self.registry.url})
        return source.open(self.topic, {"value-format": "avro"})

    def planned(self, log: TableLog | None = None) -> tuple[LogRound, list[Any]]:
        made = LogRound(log or self.opened(), self.config, look_again=lambda: self.opened().table)
        return made, list(made.plan())

    def round(self, log: TableLog | None = None) -> LogRoundResult:
        made, tasks = self.planned(log)
        return made.finish(self.engine.run(tasks))

    def rows(self) -> list[dict[str, Any]]:
        lake = open_lake(self.config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])

    def can(self, feature: Feature) -> bool:
        return support_of(load_format(self.config.format).features, feature).full


@pytest.fixture
def evolving(broker: KafkaBroker, topic: str, lake_config: LakeConfig, engine: LocalEngine) -> Iterator[Evolving]:
    with SchemaRegistry() as registry:
        yield Evolving(broker, topic, registry, lake_config, engine)


def refused(evolving: Evolving, feature: Feature, says: str) -> None:
    """The round is refused before anything is staged, for this feature; trying again would not help."""
    before = evolving.rows()
    with pytest.raises(FeatureNotSupported, match=says) as caught:
        evolving.round()
    assert caught.value.feature == feature.value
    assert not is_retryable(caught.value)
    assert evolving.rows() == before


def test_a_new_field_is_a_new_column(evolving: Evolving) -> None:
    old = evolving.register(ID, COUNT)
    evolving.produce(old, {"id": 1, "n": 1})
    evolving.round()
    new = evolving.register(ID, COUNT, EXTRA)
    evolving.produce(old, {"id": 2, "n": 2})
    evolving.produce(new, {"id": 3, "n": 3, "extra": "x"})
    assert evolving.round().rows == 2
    assert evolving.rows() == [{"id": i, "n": i, "extra": "x" if i == 3 else None} for i in (1, 2, 3)]


def test_a_field_that_is_dropped_leaves_its_column(evolving: Evolving) -> None:
    evolving.produce(evolving.register(ID, EXTRA), {"id": 1, "extra": "x"})
    evolving.round()
    evolving.produce(evolving.register(ID), {"id": 2})
    evolving.round()
    assert evolving.rows() == [{"id": 1, "extra": "x"}, {"id": 2, "extra": None}]


def test_a_wider_type_widens_the_column(evolving: Evolving) -> None:
    old = evolving.register(ID, COUNT)
    evolving.produce(old, {"id": 1, "n": 1})
    evolving.round()
    new = evolving.register(ID, WIDE)
    evolving.produce(old, {"id": 2, "n": 2})
    evolving.produce(new, {"id": 3, "n": 2**40})
    if not evolving.can(Feature.WIDEN_TYPE):
        refused(evolving, Feature.WIDEN_TYPE, "column 'n' is int32, and int64 in the source now")
        return
    evolving.round()
    assert evolving.rows() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 2**40}]


def test_a_narrower_type_leaves_the_column_as_it_is(evolving: Evolving) -> None:
    evolving.produce(evolving.register(ID, WIDE), {"id": 1, "n": 2**40})
    evolving.round()
    evolving.produce(evolving.register(ID, COUNT), {"id": 2, "n": 2})
    evolving.round()
    assert evolving.rows() == [{"id": 1, "n": 2**40}, {"id": 2, "n": 2}]


def test_an_alias_renames_the_column(evolving: Evolving) -> None:
    old = evolving.register(ID, NAME)
    evolving.produce(old, {"id": 1, "name": "a"})
    evolving.round()
    new = evolving.register(ID, TITLE)
    evolving.produce(old, {"id": 2, "name": "b"})
    evolving.produce(new, {"id": 3, "title": "c"})
    if not evolving.can(Feature.RENAME_COLUMN):
        refused(evolving, Feature.RENAME_COLUMN, "column 'name' is 'title' in the source now")
        return
    evolving.round()
    assert evolving.rows() == [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}, {"id": 3, "title": "c"}]


def test_another_kind_of_type_is_refused(evolving: Evolving) -> None:
    evolving.produce(evolving.register(ID, COUNT), {"id": 1, "n": 1})
    evolving.round()
    evolving.produce(evolving.register(ID, {"name": "n", "type": "string"}), {"id": 2, "n": "two"})
    with pytest.raises(IncompatibleTable, match="column 'n' is string in the input and int32 in the table") as caught:
        evolving.round()
    assert not is_retryable(caught.value)
    assert evolving.rows() == [{"id": 1, "n": 1}]


def _new_field(evolving: Evolving) -> tuple[Any, dict[str, Any]]:
    return evolving.register(ID, NAME, EXTRA), {"id": 2, "name": "b", "extra": "kept"}


def _alias(evolving: Evolving) -> tuple[Any, dict[str, Any]]:
    return evolving.register(ID, TITLE), {"id": 2, "title": "kept"}


@pytest.mark.parametrize("change", [_new_field, _alias])
def test_a_schema_that_changes_while_it_is_read_costs_a_round_and_no_value(
    evolving: Evolving, change: Callable[[Evolving], tuple[Any, dict[str, Any]]]
) -> None:
    """The older schema has no column for the new value: read by it, it would be lost without a word."""
    old = evolving.register(ID, NAME)
    evolving.produce(old, {"id": 1, "name": "a"})
    log = evolving.opened()
    new, row = change(evolving)
    evolving.produce(new, row)
    made, tasks = evolving.planned(log)
    with pytest.raises(SchemaChanged, match="changed while it was read") as caught:
        made.finish(evolving.engine.run(tasks))
    assert is_retryable(caught.value)
    assert evolving.rows() == []
    if "title" in row and not evolving.can(Feature.RENAME_COLUMN):
        refused(evolving, Feature.RENAME_COLUMN, "title")
        return
    assert evolving.round().outcome is RoundOutcome.PUBLISHED
    assert "kept" in evolving.rows()[1].values()
