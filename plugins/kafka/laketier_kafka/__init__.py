"""Topics as logs: anything that speaks Kafka's protocol; it may use `laketier.codecs` and the rooms below that, and
confluent-kafka inside functions."""
