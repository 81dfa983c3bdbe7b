"""What `laketier_kafka.client_errors` relies on in confluent-kafka. A failure here means that the client changed."""

from __future__ import annotations

from confluent_kafka import KafkaError

from laketier_kafka import client_errors


def test_each_error_of_the_client_has_its_own_code_and_the_name_of_librdkafka() -> None:
    codes = {name: code for name, code in vars(client_errors).items() if name.isupper()}
    assert {name: KafkaError(code).name() for name, code in codes.items()} == {name: f"_{name}" for name in codes}
    assert all(code < 0 for code in codes.values()), "those of brokers are positive"
