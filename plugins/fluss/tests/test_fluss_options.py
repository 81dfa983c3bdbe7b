"""What is refused before any server is asked, and what is never shown."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.registry import OpenSource, load_source, open_log_source
from laketier.spi import ConfigError, PluginBroken, StorageError, TableNotFound, UnsupportedType
from laketier_fluss import plugin
from laketier_fluss.buckets import Bucket, Partition
from laketier_fluss.connection import Connection
from laketier_fluss.options import FlussOptions
from laketier_fluss.types import refuse_nanoseconds

NOBODY = "127.0.0.1:1"


def source_at(bootstrap: str = NOBODY, **options: Any) -> OpenSource:
    keys = {"bootstrap-servers": bootstrap, "timeout-seconds": 0.2, **options}
    return open_log_source("fluss", keys, name="shop", origin="service.yaml")


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bootstrap-servers": " "}, "bootstrap-servers is missing"),
        ({"timeout-seconds": 0}, "not more than 0"),
        ({"client.bootstrap.servers": "x:1"}, "Set bootstrap-servers"),
        ({"client.writer.acks": "0"}, "Nothing is written to Fluss"),
        ({"cleint.x": "1"}, "unknown key"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source_at(**options)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("bootstrap", "options", "error", "said"),
    [
        (NOBODY, {}, StorageError, "127.0.0.1:1: Fluss did not answer while listing its databases, .*refused"),
        ("nowhere", {}, ConfigError, "invalid socket address"),
        (NOBODY, {"client.nonsense": "1"}, ConfigError, "Unknown property: nonsense"),
        (NOBODY, {"client.connect-timeout": "soon"}, ConfigError, "Invalid value"),
    ],
)
def test_what_the_client_refuses_is_said(bootstrap: str, options: dict[str, Any], error: type, said: str) -> None:
    source = source_at(bootstrap, **options)
    with pytest.raises(error, match=said) as raised:
        source.source.list_tables()
    assert raised.value.fix  # type: ignore[attr-defined]
    with pytest.raises(error, match=said.replace("listing its databases", "describing a table").replace(NOBODY, "d.t")):
        source.open("d.t")


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name", ["orders", ".orders", "shop."])
def test_names_without_a_database(name: str) -> None:
    with pytest.raises(TableNotFound, match=r"database\.table"):
        source_at().open(name)


@pytest.mark.usefixtures("client")
def test_secrets_are_not_shown() -> None:
    secrets = {"client.security.sasl.password": "open sesame", "client.security.sasl.username": "me"}
    source = source_at(**secrets, **{"client.security.protocol": "sasl", "client.security.sasl.mechanism": "SESAME!"})
    connection = Connection.of(load_options(source, **secrets), "shop")
    for shown in (repr(connection), repr(load_options(source, **secrets))):
        assert "open sesame" not in shown
    assert connection.redact("the password open sesame of me, not of some") == "the password *** of ***, not of some"
    with pytest.raises(Exception, match="SESAME!"):  # what is no secret says what is wrong
        source.source.list_tables()


def load_options(source: OpenSource, **client: str) -> FlussOptions:
    from laketier.config import parse_options

    options: FlussOptions = parse_options(
        source.plugin.options_type, {"bootstrap-servers": NOBODY, **client}, prefix="options.", origin="x"
    )
    return options


@given(st.integers(0, 2**31), st.none() | st.builds(Partition, st.text(min_size=1), st.integers(0, 2**63)))
def test_names_of_buckets_are_read_back(number: int, partition: Partition | None) -> None:
    bucket = Bucket(number, partition)
    assert Bucket.parse(str(bucket)) == bucket


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("ns"), pa.time64("ns"), pa.list_(pa.timestamp("ns", "UTC")), pa.struct([("t", pa.time64("ns"))])],
)
def test_nanoseconds_are_refused_wherever_they_are(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match="microseconds only"):
        refuse_nanoseconds(pa.schema([("id", pa.int64()), ("x", kind)]), "d.t")
    refuse_nanoseconds(pa.schema([("x", pa.list_(pa.timestamp("us"))), ("y", pa.time32("ms"))]), "d.t")


@pytest.mark.usefixtures("client")
def test_neither_the_plugin_nor_the_source_loads_the_client() -> None:
    code = (
        "import sys; from laketier.registry import open_log_source\n"
        "import laketier_fluss.source, laketier_fluss.session, laketier_fluss.child\n"
        f"open_log_source('fluss', {{'bootstrap-servers': '{NOBODY}'}}, name='a', origin='b')\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('fluss', 'pandas', 'pyspark')])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("built", "said"), [(True, "pyfluss`\\.$"), (False, "needs Rust. Python 3.12 needs no build")])
def test_a_client_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, built: bool, said: str) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda _: None)
    monkeypatch.setattr(plugin, "_NOT_BUILT_FOR", (9, 0) if built else (3, 0))
    with pytest.raises(PluginBroken, match="pyfluss, and it is not installed") as raised:
        source_at()
    assert re.search(said, str(raised.value.fix))


def test_the_entry_point_is_the_plugin() -> None:
    assert load_source("fluss").identifier == "fluss"
