"""Errors while a partition changes its leader, or has none. Librdkafka's consumer asks again by itself; its admin
client, which is asked for first and last offsets, hands them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenacity

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_LONGEST_WAIT_SECONDS = 1.0


def asking_again(seconds: float) -> tenacity.Retrying:
    """Asks again while a leader is elected, for ``seconds`` at most; then the error comes as it is."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_tells_of_election),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=_LONGEST_WAIT_SECONDS),
        stop=tenacity.stop_before_delay(seconds),
        reraise=True,
    )


def _tells_of_election(error: BaseException) -> bool:
    from confluent_kafka import KafkaException

    return isinstance(error, KafkaException) and is_election(error.args[0])


def is_election(error: KafkaError) -> bool:
    """Whether a broker that is no leader (yet, or any more) answers so. One that was told of no partition yet knows no
    topic of that name either, so of that name it says nothing. Of a partition that has no leader the client itself
    says that it finds none."""
    from confluent_kafka import KafkaError

    from laketier_kafka import client_errors

    return error.code() in (
        client_errors.NOENT,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    )
