"""Options that a plugin declares as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from laketier.config import document, parse_options
from laketier.spi import ConfigError, Passthrough, Secret, option


class Codec(Enum):
    ZSTD = "zstd"
    NONE = "none"


@dataclass(frozen=True)
class Options:
    target_file_bytes: int = option(512, "Bytes per file.")
    ratio: float = option(0.5, "A ratio.")
    codec: Codec = option(Codec.ZSTD, "The codec.")
    level: int | None = option(None, "Its level.")
    token: Secret | None = option(None, "A token.")
    strict: bool = option(True, "Whether.")
    storage: Passthrough = option(Passthrough(), "Handed on.")

    def __post_init__(self) -> None:
        if self.codec is Codec.NONE and self.level is not None:
            raise ValueError("codec none has no level")


def parse(values: dict[str, Any]) -> Options:
    parsed = parse_options(Options, values, prefix="lake.x.", origin="here")
    assert isinstance(parsed, Options)
    return parsed


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(values)
    return str(caught.value)


def test_text_becomes_typed() -> None:
    options = parse(
        {"target-file-bytes": "128MiB", "ratio": "0.25", "codec": "NONE", "strict": "false", "storage.A.b": "c"}
    )
    assert (options.target_file_bytes, options.ratio, options.codec) == (128 * 1024 * 1024, 0.25, Codec.NONE)
    assert options.strict is False
    assert dict(options.storage) == {"A.b": "c"}


def test_secrets_and_passed_values_never_show() -> None:
    options = parse({"token": "hunter2", "storage.key": "hunter3"})
    assert options.token is not None
    assert options.token.reveal() == "hunter2"
    assert "hunter" not in f"{options!r} {options} {options.token} {options.storage}"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"target-file-byte": 1}, "Did you mean 'lake.x.target-file-bytes'?"),
        ({"target_file_bytes": 1}, "Did you mean 'lake.x.target-file-bytes'?"),
        ({"target-file-bytes": "big"}, "lake.x.target-file-bytes = 'big' is not an integer"),
        ({"codec": "gzip"}, "lake.x.codec = 'gzip' is not one of zstd, none"),
        ({"strict": "perhaps"}, "is not true or false"),
        ({"storage": "x"}, "Did you mean 'lake.x.storage.<key>'?"),
        ({"codec": "none", "level": 3}, "codec none has no level"),
    ],
)
def test_what_can_not_be_meant_is_refused(values: dict[str, Any], says: str) -> None:
    message = refusal(values)
    assert says in message
    assert message.startswith("here: ")


def test_the_reference_has_a_row_for_each_key() -> None:
    rows = {row.key: row for row in document(Options, "lake.x.")}
    assert list(rows) == [
        "lake.x.target-file-bytes",
        "lake.x.ratio",
        "lake.x.codec",
        "lake.x.level",
        "lake.x.token",
        "lake.x.strict",
        "lake.x.storage.<key>",
    ]
    assert (rows["lake.x.codec"].type, rows["lake.x.codec"].default) == ("zstd or none", "zstd")
    assert rows["lake.x.strict"].default == "true"
    assert all(row.doc for row in rows.values())
