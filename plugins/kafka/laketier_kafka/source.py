"""A cluster as a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laketier.spi import LogSource, LogSourceConfig, TableLog
from laketier_kafka.cluster import Cluster
from laketier_kafka.columns import record_columns
from laketier_kafka.connection import Connection
from laketier_kafka.formats import make_decoder
from laketier_kafka.log import KafkaLog
from laketier_kafka.options import KafkaTableOptions


class KafkaSource(LogSource):
    """Its tables are topics, all but internal ones."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @classmethod
    def create(cls, config: LogSourceConfig) -> KafkaSource:
        """Raises `ConfigError`. Asks no broker yet."""
        cluster = Cluster(Connection.of(config.options, config.name))
        cluster.connect()
        return cls(cluster)

    def list_tables(self) -> Sequence[str]:
        """See `LogSource.list_tables`."""
        return self._cluster.topic_names()

    def open(self, name: str, options: KafkaTableOptions) -> TableLog:
        """See `LogSource.open`."""
        topic = self._cluster.topic(name)
        decoder: Any = make_decoder(name, options, self._cluster.connection)
        return KafkaLog(self._cluster, topic, options, decoder, record_columns(options, decoder.schema, name))

    def close(self) -> None:
        """See `LogSource.close`."""
        self._cluster.close()
