"""Text for people: what is hidden in it, and what is shown instead of sent."""

from __future__ import annotations

import json

import pytest

from laketier.spi import BucketSpec, ConfigError, LaketierError
from laketier.spi.redaction import holds_secret, is_secret, redacted
from laketier.spi.visible import visible, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 雪 \N{SNOWMAN}", "größe 雪 \N{SNOWMAN}"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\x00b\x7fc", "a\\x00b\\x7fc"),
        ("x\u202ey", "x\\u202ey"),
        ("\ud800", "\\ud800"),
        ("\r", "\\r"),
        ("it's \x1b'\"", "it's \\x1b'\""),
    ],
)
def test_what_a_terminal_acts_upon_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("value", ["plain", "\x7f\u202e\x9f", "a\nb"])
def test_json_keeps_its_values(value: str) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(visible_json(text)) == value
    assert visible_json(text).isprintable()


@pytest.mark.parametrize(
    ("name", "secret"),
    [("password", True), ("s3.Secret-Access-Key", True), ("sasl.TOKEN", True), ("path", False), ("", False)],
)
def test_secrets_are_known_by_their_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("s3://bucket/path", False),
        ("postgresql://user:hunter2@host/db", True),
        ("postgresql://host:5432/db", False),
        ("postgresql://host/db?password=hunter2", True),
        ("http://host:80/a@b?x=1", False),
        ("https://host/x?token=abc", True),
        ("file.csv?token=abc", False),
        ("/path/secret=3", False),
        ("s3://bucket/secret=3/x", False),
        ("s3://bucket/x?region=eu", False),
    ],
)
def test_a_url_holds_a_secret_in_its_password_or_query(url: str, holds: bool) -> None:
    assert holds_secret(url) is holds


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("can't open postgresql://u:hunter2@h/d", "can't open postgresql://u:***@h/d"),
        ("at http://h/x?token=abc&y=1", "at http://h/x?token=***&y=1"),
        ("{'password': 'abc', 'x': 1}", "{'password': '***', 'x': 1}"),
        ("nothing here", "nothing here"),
    ],
)
def test_secrets_are_hidden_in_text(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Object not found\n      \x1b[31m\u21b3\x1b[0m No such file (os error 2)\n",
            "Object not found: No such file (os error 2)\n",
        ),
        ("\x1b[1;31mbroken\x1b[0m", "broken"),
        (
            "Json error\n   0: <unknown>\n   1: start_thread\n             at ./nptl/pthread_create.c:442:8\n",
            "Json error",
        ),
        ("two of:\n  0: a list of ours", "two of:\n  0: a list of ours"),
        ("they differ:\n  1: a is int\n  2: b is text", "they differ:\n  1: a is int\n  2: b is text"),
        ("\x1b[2J", "\\x1b[2J"),
    ],
)
def test_the_words_of_a_library_are_told_without_colours_and_calls(text: str, told: str) -> None:
    """As deltalake tells a lost file, and a log entry that is no JSON: with a screen of addresses."""
    assert str(LaketierError("it failed", why=text)) == f"it failed, because {told}"


def test_a_library_may_tell_as_many_lines_as_it_likes() -> None:
    """As one pattern for all of them, it took minutes."""
    why = "the rows" + "".join(f"\n  {number}: a row that is refused" for number in range(20_000)) + "\nand no more"
    assert len(str(LaketierError("it failed", why=why))) > len(why)


def test_buckets_are_told_as_they_are_configured() -> None:
    assert str(BucketSpec(5, ("id", "sub"))) == "bucket(5, id, sub)"
    assert str(BucketSpec(5, ("id",), "iceberg")) == "iceberg:bucket(5, id)"
    with pytest.raises(ConfigError, match="0 buckets by id"):
        BucketSpec(0, ("id",))
