"""The source ``kafka``."""

from __future__ import annotations

from importlib.util import find_spec

from laketier.registry import hookimpl
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin, PluginBroken
from laketier_kafka.options import KafkaOptions, KafkaTableOptions


class KafkaPlugin(LogSourcePlugin):
    """Anything that speaks Kafka's protocol."""

    identifier = "kafka"
    spi_version = 2
    options_type = KafkaOptions
    table_options_type = KafkaTableOptions

    def create_source(self, config: LogSourceConfig) -> LogSource:
        """Raises `ConfigError` for settings that the client refuses, and `PluginBroken` without the client."""
        if find_spec("confluent_kafka") is None:
            raise PluginBroken(
                "the source kafka needs the client confluent-kafka, and it is not installed",
                where=config.name,
                fix="Install it: `pip install 'confluent-kafka[avro,json,protobuf,schemaregistry]'`.",
            )
        from laketier_kafka.source import KafkaSource

        return KafkaSource.create(config)


_PLUGIN = KafkaPlugin()


@hookimpl
def laketier_source() -> LogSourcePlugin:
    """See `laketier.registry.groups.SourceHooks`."""
    return _PLUGIN
