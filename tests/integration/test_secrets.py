"""A canary in each place where a setting may hold a secret; it comes out of no command, error, repr or log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from laketier.cli.app import main
from laketier.registry import configure, open_lake
from laketier.spi import ConfigError, LaketierError
from laketier.spi.redaction import redacted
from laketier.spi.visible import visible
from laketier_verification.lakes import OURS

CANARY = "cAnArYs3cr3t"
NOBODY = "http://127.0.0.1:9"
URLS = [f"s3://user:{CANARY}@bucket/x", f"s3://a:x/{CANARY}@b@bucket/x", f"ftp://user:{CANARY}@host/x"]
SETTINGS: list[tuple[str, Mapping[str, str]]] = [
    ("delta", {"lake.delta.storge.aws_secret_access_key": CANARY}),
    ("delta", {"lake.delta.nonsense": f"s3://u:{CANARY}@x"}),
    (
        "iceberg",
        {"lake.iceberg.catalog.type": "rest", "lake.iceberg.catalog.uri": NOBODY, "lake.iceberg.catalog.token": CANARY},
    ),
    ("iceberg", {"lake.iceberg.catalog.type": "rest", "lake.iceberg.catalog.uri": f"http://u:{CANARY}@127.0.0.1:9"}),
    (
        "iceberg",
        {"lake.iceberg.catalog.type": "sql", "lake.iceberg.catalog.uri": f"postgresql://u:{CANARY}@127.0.0.1:9/d"},
    ),
    ("localfile", {"lake.localfile.password": CANARY}),
]
COMMANDS = [("doctor", "db.t"), ("status", "db.t"), ("status",), ("status", "db.t", "--json"), ("-v", "read", "db.t")]


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["laketier", *words])
    capfd.readouterr()
    with pytest.raises(SystemExit):
        main()
    out, err = capfd.readouterr()
    return out + err


@pytest.mark.parametrize("format", OURS)
@pytest.mark.parametrize("url", URLS)
def test_a_warehouse_with_a_password_is_refused_without_telling_it(format: str, url: str) -> None:
    """It would be written into the metadata of tables."""
    with pytest.raises(ConfigError, match="holds a password") as refused:
        configure({"lake.format": format, "lake.table": "db.t", "lake.warehouse": url}, environment={})
    assert not [each for each in chain(refused.value) if CANARY in f"{each} {each!r}"]


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("hdfs://nn:8020/user/bob@corp.com/wh", False),
        ("hdfs://[::1]:8020/user/bob@corp.com/wh", False),
        ("hdfs://user@nn:8020/wh", False),
        ("s3://minio:9000/b/x@y", False),
        ("gs://bucket/date=2026/token=x", False),
        ("/data/password=none/x", False),
        ("file:///data/a:b/c@d", False),
        ("abfss://container@account.dfs.core.windows.net/a:b@c", False),
        ("s3://user:8020@bucket/x", True),
        ("s3://user:a?b@bucket/x", True),
        ("s3://user:a#b@bucket/x", True),
        ("s3://bucket/x?secret_key=a", True),
        ("s3://minio:9000/x?endpoint=http://user:a@host", True),
    ],
)
def test_which_warehouses_hold_a_secret(url: str, holds: bool) -> None:
    """A port and an @ in the path are no password, and a folder may be called anything."""
    values = {"lake.format": "delta", "lake.table": "db.t", "lake.warehouse": url}
    if holds:
        with pytest.raises(ConfigError, match="holds a password"):
            configure(values, environment={})
    else:
        assert configure(values, environment={}).warehouse == url


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    places = [(name, url, {}) for name in OURS for url in URLS]
    places += [(name, str(tmp_path / "lake"), settings) for name, settings in SETTINGS]
    for name, warehouse, settings in places:
        given = [word for key, value in settings.items() for word in ("-s", f"{key}={value}")]
        told = run(monkeypatch, capfd, *words, "-f", name, "-w", warehouse, *given)
        assert told
        assert CANARY not in told, (name, warehouse, settings)
        assert "Traceback" not in told or "-v" in words


@pytest.mark.parametrize("base", ["Exception", "BaseException"])
def test_an_error_that_nobody_expected(base: str) -> None:
    """Its traceback is told, for a report, but Python itself would write the secrets with it. What a library in Rust
    panics with is no `Exception`."""
    program = f"""
import laketier.cli.app as cli
class Panic({base}): pass
def fails(**_):
    raise Panic({{"password": "{CANARY}", "url": "{URLS[0]}"}})
cli.app = fails
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program, "formats", "--json"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "report it" in done.stderr
    assert "Panic: {'password': '***'" in done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["type"] == "Panic"


@pytest.mark.parametrize(("format", "settings"), SETTINGS)
def test_objects_and_errors(format: str, settings: Mapping[str, str], tmp_path: Path) -> None:
    values = {"lake.format": format, "lake.table": "db.t", "lake.warehouse": str(tmp_path), **settings}
    try:
        config = configure(values, environment={})
        shown = [repr(config)]
        lake = open_lake(config)
        shown += [repr(lake), repr(lake.storage), repr(lake.storage.catalog())]
    except LaketierError as error:
        shown = [f"{each} {each!r}" for each in chain(error)]
    assert not [text for text in shown if CANARY in text]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"s3://user:{CANARY}@bucket/x", "s3://user:***@bucket/x"),
        (f"s3://user:a/{CANARY}@b@bucket/x", "s3://user:***@bucket/x"),
        (f"'postgresql://u:{CANARY}@h:5/d?sslmode=require'", "'postgresql://u:***@h:5/d?sslmode=require'"),
        (f"aws_secret_access_key={CANARY} rest", "aws_secret_access_key=*** rest"),
        (f'{{"password": "{CANARY}", "a": 1}}', '{"password": "***", "a": 1}'),
        (f"s3.secret-access-key = {CANARY}", "s3.secret-access-key = ***"),
        ("kafka://h:9092 is not there, ask a@b.c", "kafka://h:9092 is not there, ask a@b.c"),
        ("unexpected token: x", "unexpected token: x"),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


def test_what_is_visible() -> None:
    assert visible("a\tb\nc é 漢") == "a\tb\nc é 漢"
    assert visible("\x1b[2J\x07\x9b\u202e\r") == "\\x1b[2J\\x07\\x9b\\u202e\\r"
