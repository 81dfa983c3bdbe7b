"""Rounds on an object store that fails, times out, and loses answers after the effect."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from depth import deep_where
from faulty_s3 import BUCKET, DRAWN, KEY, REGION, Fault, FaultyS3, faulty_s3
from laketier.kit import failpoints
from laketier.registry import Lake, configure, open_lake
from laketier.spi import LaketierError, Refused, Token
from laketier.tables import prepare_table
from laketier.tiering import RetryPolicy, RoundOutcome, TieringRound, write_task
from laketier_verification.lakes import SCHEMA, rows_of

FEW, EPOCHS = 3, 8
TRIES = 40
CATALOG = "s3"
SHARE = 0.08
SEEDS = range(int(os.environ.get("LAKETIER_S3_SEEDS", "8")))
QUICK = RetryPolicy(first_wait_seconds=0.001, longest_wait_seconds=0.02)


@pytest.fixture(scope="module")
def s3() -> Iterator[FaultyS3]:
    with faulty_s3() as service:
        yield service


def options_of(format: str, s3: FaultyS3, folder: Path) -> dict[str, str]:
    """How each library is told of the store, and to give up early: its own patience is not under test."""
    if format == "delta":
        store = {
            "AWS_ENDPOINT_URL": s3.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "max_retries": "2",
            "backoff_config.init_backoff": "10ms",
            "backoff_config.max_backoff": "50ms",
            "timeout": "1s",
        }
        return {f"lake.delta.storage.{key}": value for key, value in store.items()}
    if format == "lance":
        store = {
            "endpoint": s3.url,
            "allow_http": "true",
            "region": REGION,
            "access_key_id": KEY,
            "secret_access_key": KEY,
            "virtual_hosted_style_request": "false",
            "client_max_retries": "2",
            "client_retry_timeout": "5",
            "timeout": "1s",
        }
        return {f"lake.lance.storage.{key}": value for key, value in store.items()}
    if format == "localfile":
        store = {
            "endpoint": s3.url,
            "region": REGION,
            "access_key_id": KEY,
            "secret_access_key": KEY,
            "timeout": "1s",
        }
        return {f"lake.localfile.storage.{key}": value for key, value in store.items()}
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.sqlite",
        "s3.endpoint": s3.url,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": KEY,
        "s3.region": REGION,
        "s3.force-virtual-addressing": "false",
        "s3.request-timeout": "1",
    }
    options = {f"lake.iceberg.catalog.{key}": value for key, value in catalog.items()}
    return {**options, "lake.iceberg.catalog-name": CATALOG}


@dataclass(frozen=True)
class Stored:
    """A lake in the store, and the options of its library."""

    format: str
    lake: Lake
    given: Mapping[str, str]

    @classmethod
    def at(cls, format: str, s3: FaultyS3, folder: Path, name: str) -> Stored:
        options = options_of(format, s3, folder)
        keys = {"lake.format": format, "lake.warehouse": f"s3://{BUCKET}/{name}", "lake.table": "db.t", **options}
        given = {key.split(".", 3)[3]: value for key, value in options.items() if key.count(".") > 2}
        return cls(format, open_lake(configure(keys, environment={})), given)

    def foreign_ids(self) -> list[int]:
        """The ids as a reader that is not ours finds them."""
        info = self.lake.load_table()
        if self.format == "delta":
            from deltalake import DeltaTable

            rows = DeltaTable(info.location, storage_options=dict(self.given)).to_pyarrow_table(columns=["id"])
        elif self.format == "lance":
            import lance

            rows = lance.dataset(info.location, storage_options=dict(self.given)).to_table(columns=["id"])
        elif self.format == "localfile":
            import polars as pl

            options = {f"aws_{key}": value for key, value in self.given.items() if key != "timeout"}
            options["aws_allow_http"] = "true"
            rows = pl.scan_parquet(f"{info.location}/**/*.parquet", storage_options=options).select("id").collect()
            return sorted(rows["id"].to_list())
        else:
            from pyiceberg.catalog import load_catalog

            rows = load_catalog(CATALOG, **self.given).load_table("db.t").scan().to_arrow()
        found: list[int] = sorted(rows["id"].to_pylist())
        return found


def ids_of(epoch: int) -> list[int]:
    return [epoch * 10, epoch * 10 + 1]


def run_epoch(lake: Lake, epoch: int) -> tuple[RoundOutcome, int]:
    """As an engine does: the same epoch until it is acknowledged. A refusal would be a mistake of ours."""
    for attempt in range(TRIES):
        try:
            factory = lake.tiering_factory(prepare_table(lake, SCHEMA))
            tiering = TieringRound(factory, token=Token("p", "run", epoch, content=str(epoch)), policy=QUICK)
            tiering.begin()
            return tiering.commit_messages([write_task(factory, [rows_of(i)]) for i in ids_of(epoch)]).outcome, attempt
        except Refused:
            raise
        except LaketierError:
            continue
    raise AssertionError(f"epoch {epoch} did not get through in {TRIES} attempts")


@pytest.mark.slow
@pytest.mark.parametrize("seed", deep_where([(seed,) for seed in SEEDS], lambda seed: seed > 0))
@pytest.mark.parametrize("format", ["delta", "iceberg", "lance", "localfile"])
def test_every_row_once(format: str, seed: int, s3: FaultyS3, tmp_path: Path) -> None:
    stored = Stored.at(format, s3, tmp_path, f"{format}-{seed}")
    prepare_table(stored.lake, SCHEMA)
    epochs = EPOCHS if seed else FEW
    s3.injected.clear()
    s3.arm(seed, SHARE, (*DRAWN, Fault.CONFLICT) if format == "localfile" else DRAWN)
    try:
        ends = [run_epoch(stored.lake, epoch) for epoch in range(epochs)]
    finally:
        s3.disarm()
    outcomes = dict(Counter(outcome.value for outcome, _ in ends))
    faults = {fault.name: count for fault, count in s3.injected.items()}
    print(f"{format}, seed {seed}: {outcomes}, {sum(failed for _, failed in ends)} attempts failed, {faults}")
    assert faults
    assert stored.foreign_ids() == sorted(i for epoch in range(epochs) for i in ids_of(epoch))


@pytest.mark.parametrize("fault", [Fault.LOST_500, Fault.RESET])
@pytest.mark.parametrize(
    ("format", "point", "suffix"),
    [
        ("delta", "publish.between_record_and_commit", ".json"),
        ("lance", "publish.before_commit", ".manifest"),
        ("localfile", "publish.before_manifest", ".json"),
    ],
)
def test_a_commit_whose_answer_is_lost_is_found(
    format: str, point: str, suffix: str, fault: Fault, s3: FaultyS3, tmp_path: Path
) -> None:
    """From the commit on, every answer to the put that decides is lost after its effect. The table tells that it
    landed, whatever a library that put again was told."""
    stored = Stored.at(format, s3, tmp_path, f"{format}-{fault.name.lower()}")
    run_epoch(stored.lake, 0)
    factory = stored.lake.tiering_factory(prepare_table(stored.lake, SCHEMA))
    message = write_task(factory, [rows_of(*ids_of(1))])
    tiering = TieringRound(factory, token=Token("p", "run", 1, content="1"), policy=QUICK)

    def at(name: str) -> None:
        if name == point:
            s3.always_put(fault, suffix)

    with failpoints.observed(at):
        try:
            result = tiering.commit_messages([message])
        finally:
            s3.disarm()
    assert result.outcome in (RoundOutcome.PUBLISHED, RoundOutcome.RECOVERED)
    assert stored.foreign_ids() == ids_of(0) + ids_of(1)
