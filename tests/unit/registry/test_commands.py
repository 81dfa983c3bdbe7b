"""Commands in advice: complete, quoted, and without secrets."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from laketier.config import LakeConfig
from laketier.registry import complete_commands, configure
from laketier.spi import LaketierError, Refused, TablePath, Token, Watermark, decide

TOKEN = Token("orders-v1", "3f6c", 4)


def config(**changes: object) -> LakeConfig:
    values = {"format": "localfile", "warehouse": "/data/my lake", "table": TablePath.parse("sales.orders")}
    return LakeConfig(**(values | {"pipeline": "orders-v1"} | changes))  # type: ignore[arg-type]


def commands(error: LaketierError) -> list[list[str]]:
    assert error.fix is not None
    return [shlex.split(text) for text in error.fix.split("`")[1::2]]


def refused(last: Token | None, token: Token) -> Refused:
    with pytest.raises(Refused) as caught:
        decide(None if last is None else Watermark(last, "c"), token)
    return caught.value


@pytest.mark.parametrize(
    ("last", "token", "first"),
    [
        (None, TOKEN, "adopt"),
        (Token("orders-v1", "other", 9), TOKEN, "adopt"),
        (Token("orders-v1", "3f6c", 4, content="a"), Token("orders-v1", "3f6c", 4, content="b"), "rewind"),
        (Token("orders-v1", "3f6c", 0, content="a"), Token("orders-v1", "3f6c", 0, content="b"), "forget"),
        (Token("orders-v1", "3f6c", 9), TOKEN, "show"),
        (Token("orders-v1", "3f6c", 1), TOKEN, "adopt"),
    ],
)
def test_each_refusal_names_commands_that_can_be_run_as_they_stand(
    last: Token | None, token: Token, first: str
) -> None:
    error = refused(last, token)
    complete_commands(error, config(), token)
    found = commands(error)
    assert found[0][:3] == ["laketier", "pipeline", first]
    for words in found:
        assert words[3:10] == ["sales.orders", "-f", "localfile", "-w", "/data/my lake", "-p", "orders-v1"]
        assert ("--run" in words) == (words[2] == "adopt")
        assert ("--epoch" in words) == (words[2] in ("adopt", "rewind"))
        assert "-1" not in words
    complete_commands(error, config(warehouse="/elsewhere"), token)
    assert commands(error) == found, "completed once"


def test_what_a_new_checkpoint_may_choose_between() -> None:
    first = refused(Token("p", "old", 7), Token("p", "it's new", 0))
    complete_commands(first, config(pipeline="p"), Token("p", "it's new", 0))
    adopt, forget = commands(first)
    assert adopt[-4:] == ["--run", "it's new", "--epoch", "0"]
    assert forget[2] == "forget"


def test_advice_of_a_format_is_completed_from_the_round() -> None:
    error = LaketierError("gone", fix="Run `laketier pipeline adopt`, or `laketier history`; `laketier run`.")
    complete_commands(error, config(), TOKEN)
    adopt, history, run = commands(error)
    assert adopt[-6:] == ["-p", "orders-v1", "--run", "3f6c", "--epoch", "EPOCH"]
    assert history == ["laketier", "history", "sales.orders", "-f", "localfile", "-w", "/data/my lake"]
    assert run == ["laketier", "run"]


def test_secrets_are_not_in_a_command() -> None:
    keys = {
        "lake.format": "iceberg",
        "lake.warehouse": "s3://bucket/lake",
        "lake.table": "a.b",
        "lake.iceberg.catalog.uri": "postgresql://me:CANARY2@db/x",
        "lake.iceberg.catalog.s3.session": "CANARY3",
        "lake.iceberg.catalog.header.x": "CANARY4",
        "lake.iceberg.target-file-rows": "7",
    }
    error = LaketierError("gone", fix="Run `laketier pipeline show`.")
    configured = replace(configure(keys, environment={}), warehouse="s3://key:CANARY1@host/lake")
    complete_commands(error, configured)
    assert error.fix is not None
    assert "CANARY" not in error.fix
    assert "lake.iceberg.target-file-rows=7" in error.fix
    assert "lake.iceberg.catalog.uri=" in error.fix
