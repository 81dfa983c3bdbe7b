"""``${NAME}`` in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from laketier.config import load_config, parse_options
from laketier.config.origins import read_yaml
from laketier.config.references import resolved
from laketier.config.service import load_service
from laketier.spi import ConfigError, option


@dataclass(frozen=True)
class Options:
    n: int = option(0, "A number.")
    size_bytes: int = option(0, "A size.")
    strict: bool = option(False, "Whether.")


SET = {"PASSWORD": "p$1", "HOST": "broker"}


def test_texts_at_any_depth_are_resolved_and_nothing_else_is() -> None:
    document = {"a": [{"b": "${HOST}:${PASSWORD}"}, 1, None], "${HOST}": "$$ ${HOST} $HOST $${HOST}", "n": 2.5}
    assert resolved(document, where="f", environment=SET) == {
        "a": [{"b": "broker:p$1"}, 1, None],
        "${HOST}": "$ broker $HOST ${HOST}",
        "n": 2.5,
    }


@pytest.mark.parametrize("key", ["n", "size-bytes", "strict"])
def test_no_error_of_an_option_shows_what_came_from_the_environment(key: str) -> None:
    values = resolved({"secret": " ${PASSWORD} ", "plain": "x$$1"}, where="f", environment=SET)
    with pytest.raises(ConfigError, match=r"= \(a text from the environment\) is not") as told:
        parse_options(Options, {key: values["secret"]}, prefix="", origin="f")
    assert "p$1" not in str(told.value)
    with pytest.raises(ConfigError, match=r"'x\$1' is not"):
        parse_options(Options, {key: values["plain"]}, prefix="", origin="f")


@pytest.mark.parametrize("key", ["table", "pipeline", "epoch", "as-of", "snapshot-id", "bucket-by", "warehouse"])
def test_no_error_of_a_key_shows_what_came_from_the_environment(key: str) -> None:
    values = resolved({key: "s3://u:${PASSWORD}@h"}, where="f", environment=SET)
    with pytest.raises(ConfigError, match=r"= \(a text from the environment\) ") as told:
        load_config({"lake": {"format": "one", "warehouse": "/w", "table": "d.t", **values}}, environment={})
    assert "p$1" not in str(told.value)


def test_what_came_from_the_environment_is_known_when_a_plugin_types_it() -> None:
    values = resolved({"n": "${PASSWORD}"}, where="f", environment=SET)
    config = load_config({"lake": {"format": "one", "warehouse": "/w", "table": "d.t", "one": values}}, environment={})
    with pytest.raises(ConfigError, match="is not an integer") as told:
        parse_options(Options, config.format_options, prefix="lake.one.", origin=config.origin)
    assert "p$1" not in str(told.value)


def test_what_is_not_set_is_told_with_its_key() -> None:
    with pytest.raises(
        ConfigError, match=r"a\.0\.b refers to .* PASSWORT, which is not set.*Did you mean PASSWORD"
    ) as told:
        resolved({"a": [{"b": "${PASSWORT}"}]}, where="service.yaml", environment=SET)
    assert "p$1" not in str(told.value)


def test_files_may_refer_to_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_FOLDER", "/lake")
    path = tmp_path / "lake.yaml"
    path.write_text("lake: {warehouse: '${LAKE_FOLDER}/raw'}\n")
    assert read_yaml(path) == {"lake": {"warehouse": "/lake/raw"}}


@pytest.mark.parametrize("text", ["x${HOST:-other}", "${HOST-other}", "$$${PASSWORT:?unset}"])
def test_a_default_as_of_a_shell_is_not_taken_for_the_text(text: str) -> None:
    """The service connected with the password `${PASSWORD:-}`, and said that the server refused it."""
    with pytest.raises(ConfigError, match=r"a\.0 gives the environment variable \w+ a default, as shells do"):
        resolved({"a": [text]}, where="f", environment=SET)
    written = "$${HOST:-x} ${env:HOST} ${user.name}"  # Spark has variables of its own
    assert resolved(written, where="f", environment=SET) == "${HOST:-x} ${env:HOST} ${user.name}"


def test_no_error_shows_a_text_as_long_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(f"name: [{'x' * 10_000}]\ntables: {'y' * 10_000}\nstate: 5\nlease: {'z' * 10_000}\n")
    with pytest.raises(ConfigError, match=r"\(10,002 letters\)") as told:
        load_service(path)
    assert len(str(told.value)) < 2_000


@pytest.mark.parametrize("before", range(165, 186, 4))
def test_no_error_shows_half_a_secret(tmp_path: Path, before: int) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(f"lease: '{'z' * before} postgresql://user:pa55word-of-mine@host/db'\n")
    with pytest.raises(ConfigError, match="z postgres") as told:
        load_service(path)
    assert "pa55" not in str(told.value)
