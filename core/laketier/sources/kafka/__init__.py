"""Topics of a Kafka cluster as logs. The client library is imported when a source is made, not before."""
