"""The errors of the client itself, which no broker sends.

confluent-kafka documents them under the names that librdkafka gives them, with an underscore in front; those of brokers
have none. They are public for all that, and here so that nothing else with an underscore is used unseen.
"""

from __future__ import annotations

from confluent_kafka import KafkaError

ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN
AUTHENTICATION = KafkaError._AUTHENTICATION
AUTO_OFFSET_RESET = KafkaError._AUTO_OFFSET_RESET
BAD_MSG = KafkaError._BAD_MSG
INVALID_ARG = KafkaError._INVALID_ARG
NOENT = KafkaError._NOENT
"""The admin client says so of partitions for which it finds no leader to ask."""
PARTITION_EOF = KafkaError._PARTITION_EOF
RESOLVE = KafkaError._RESOLVE
TIMED_OUT = KafkaError._TIMED_OUT
TRANSPORT = KafkaError._TRANSPORT
UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION
UNKNOWN_TOPIC = KafkaError._UNKNOWN_TOPIC
UNSUPPORTED_FEATURE = KafkaError._UNSUPPORTED_FEATURE
