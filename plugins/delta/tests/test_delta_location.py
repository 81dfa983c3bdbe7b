"""What delta-rs calls ``AWS_…``, as pyarrow takes it: both have to see the same bucket."""

from __future__ import annotations

import pytest

from laketier_delta.location import s3_arguments


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({}, {}),
        ({"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s"}, {"access_key": "k", "secret_key": "s"}),
        ({"AWS_SESSION_TOKEN": "t"}, {"session_token": "t"}),
        ({"token": "t"}, {"session_token": "t"}),
        ({"session_token": "first", "token": "second"}, {"session_token": "first"}),
        ({"AWS_REGION": "eu"}, {"region": "eu"}),
        ({"AWS_DEFAULT_REGION": "us"}, {"region": "us"}),
        ({"AWS_REGION": "eu", "AWS_DEFAULT_REGION": "us"}, {"region": "eu"}),
        (
            {"AWS_ENDPOINT_URL": "http://host:9000"},
            {"endpoint_override": "host:9000", "scheme": "http", "force_virtual_addressing": False},
        ),
        (
            {"endpoint": "https://host", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "TRUE"},
            {"endpoint_override": "host", "scheme": "https", "force_virtual_addressing": True},
        ),
        (
            {"endpoint_url": "http://first", "endpoint": "http://second", "virtual_hosted_style_request": "false"},
            {"endpoint_override": "first", "scheme": "http", "force_virtual_addressing": False},
        ),
    ],
)
def test_arguments_of_a_bucket(storage: dict[str, str], expected: dict[str, object]) -> None:
    assert s3_arguments(storage) == expected
