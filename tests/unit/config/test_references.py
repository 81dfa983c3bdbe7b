"""``${NAME}`` in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.config.origins import read_yaml
from laketier.config.references import resolved
from laketier.config.typed import parse_value
from laketier.spi import ConfigError

SET = {"PASSWORD": "p$1", "HOST": "broker"}


def test_texts_at_any_depth_are_resolved_and_nothing_else_is() -> None:
    document = {"a": [{"b": "${HOST}:${PASSWORD}"}, 1, None], "${HOST}": "$$ ${HOST} $HOST $${HOST}", "n": 2.5}
    assert resolved(document, where="f", environment=SET) == {
        "a": [{"b": "broker:p$1"}, 1, None],
        "${HOST}": "$ broker $HOST ${HOST}",
        "n": 2.5,
    }


def test_no_error_of_an_option_shows_what_came_from_the_environment() -> None:
    values = resolved({"n": " ${PASSWORD} ", "plain": "x$$1"}, where="f", environment=SET)
    with pytest.raises(ConfigError, match="an integer") as told:
        parse_value("n", int, values["n"], origin="f")
    assert "p$1" not in str(told.value)
    with pytest.raises(ConfigError, match=r"'x\$1' is not an integer"):
        parse_value("n", int, values["plain"], origin="f")


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
