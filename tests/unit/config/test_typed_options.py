"""Options that a plugin declares as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from laketier.config import document, parse_options
from laketier.registry import load_format
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


def test_all_that_is_wrong_is_said_at_once() -> None:
    told = refusal({"target-file-bytes": "big", "codec": "gzip", "rato": 1, "token": "hunter2"})
    assert told.startswith("here: 3 settings are wrong. Correct each:")
    assert "is not an integer, because" in told
    assert "It is: Bytes per file." in told
    assert "Did you mean 'lake.x.ratio'?" in told
    assert "hunter2" not in told


@dataclass(frozen=True)
class Names:
    """Words that a model of pydantic has for itself."""

    schema: str = option("", "A schema.")
    copy: bool = option(False, "Whether.")
    model_config: str = option("", "A name.")
    json: Passthrough = option(Passthrough(), "Handed on.")


def test_an_option_may_have_any_name() -> None:
    values = {"schema": "s", "copy": " true ", "model-config": "7", "json.a": 1}
    found = parse_options(Names, values, prefix="", origin="here")
    assert found == Names("s", True, "7", found.json)
    assert dict(found.json) == {"a": "1"}


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


@dataclass(frozen=True)
class Bounded:
    rows: int | None = option(None, "At least two.", least=2)
    share: float = option(0.5, "None is negative.", least=0.0)


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [("rows", "1", "2"), ("rows", -5, "2"), ("share", "-0.1", "0.0"), ("share", "nan", "0.0")],
)
def test_less_than_the_least_is_refused_by_its_key(key: str, value: Any, least: str) -> None:
    with pytest.raises(ConfigError, match=rf"here: lake\.x\.{key} = .* is too small\. Set it to {least} or more\."):
        parse_options(Bounded, {key: value}, prefix="lake.x.", origin="here")


def test_the_least_itself_and_nothing_pass() -> None:
    found = parse_options(Bounded, {"rows": "2", "share": 0}, prefix="lake.x.", origin="here")
    assert (found.rows, found.share) == (2, 0)
    assert parse_options(Bounded, {}, prefix="lake.x.", origin="here").rows is None


@dataclass(frozen=True)
class Topped:
    rows: int | None = option(None, "Up to nine.", most=9)
    share: float = option(0.5, "Up to one.", most=1.0)
    some: int = option(1, "As many as you like.")
    some_bytes: int = option(1, "As many as you like.")
    retry_token: int = option(1, "Secret by its name.", most=9)


@pytest.mark.parametrize(
    ("key", "value", "most"),
    [
        ("rows", "10", "9"),
        ("share", "1.5", "1.0"),
        ("share", "nan", "1.0"),
        ("some", 2**63, str(2**63 - 1)),
        ("some", "1" * 40, str(2**63 - 1)),
        ("some-bytes", "90000 PB", str(2**63 - 1)),
    ],
)
def test_more_than_the_most_is_refused_by_its_key(key: str, value: Any, most: str) -> None:
    """Of integers, no library takes more than 64 bits: it would fail in a task, or write what nobody can read."""
    with pytest.raises(ConfigError, match=rf"here: lake\.x\.{key} = .* is too large\. Set it to {most} or less\."):
        parse_options(Topped, {key: value}, prefix="lake.x.", origin="here")


def test_the_most_itself_and_nothing_pass() -> None:
    found = parse_options(Topped, {"rows": "9", "share": 1, "some": 2**63 - 1}, prefix="lake.x.", origin="here")
    assert (found.rows, found.share, found.some) == (9, 1, 2**63 - 1)
    assert parse_options(Topped, {}, prefix="lake.x.", origin="here").rows is None
    with pytest.raises(ConfigError, match=r"lake\.x\.some = -9223372036854775808 is too small"):
        parse_options(Topped, {"some": -(2**63)}, prefix="lake.x.", origin="here")


@pytest.mark.parametrize("value", ["hunter2", "4711"])
def test_a_key_that_is_named_like_a_secret_tells_no_value(value: str) -> None:
    with pytest.raises(ConfigError, match=r"lake\.x\.retry-token = \*\*\* ") as told:
        parse_options(Topped, {"retry-token": value}, prefix="lake.x.", origin="here")
    assert value not in str(told.value)


@pytest.mark.parametrize("format", ["delta", "iceberg", "localfile"])
@pytest.mark.parametrize("key", ["target-file-rows", "row-group-rows", "max-open-files", "buffer-bytes"])
def test_no_format_takes_files_of_no_rows(format: str, key: str) -> None:
    options = load_format(format).options_type
    with pytest.raises(ConfigError, match=f"{key} = 0 is too small"):
        parse_options(options, {key: "0"}, prefix=f"lake.{format}.", origin="here")
