"""An endpoint with ``http://`` is leave enough, wherever it is named."""

import pytest

from laketier.kit.store_endpoint import asks_for_plain_http


@pytest.mark.parametrize(
    ("options", "environment", "asks"),
    [
        ({}, {}, False),
        ({"endpoint": "http://h:1"}, {}, True),
        ({"aws_endpoint": "HTTP://h"}, {}, True),
        ({"AWS_ENDPOINT_URL": "http://h"}, {}, True),
        ({"endpoint-url": "http://h"}, {}, True),
        ({"AWS_ENDPOINT_URL_S3": "http://h"}, {}, True),
        ({"endpoint": "https://h"}, {}, False),
        ({"endpoint": "http://h", "allow_http": "false"}, {}, False),
        ({"endpoint": "http://h", "AWS_ALLOW_HTTP": "true"}, {}, False),
        ({}, {"AWS_ENDPOINT_URL": "http://h"}, True),
        ({}, {"AWS_ENDPOINT_URL_S3": "http://h"}, True),
        ({}, {"AWS_ENDPOINT": "https://h"}, False),
        ({}, {"AWS_ENDPOINT_URL": "http://h", "AWS_ALLOW_HTTP": "false"}, False),
        ({"endpoint": "https://h"}, {"AWS_ENDPOINT_URL": "http://h"}, False),
    ],
)
def test_plain_http_is_asked_for(
    options: dict[str, str], environment: dict[str, str], asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert asks_for_plain_http(options) is asks
