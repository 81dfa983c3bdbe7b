"""A landing zone on an object store, with its ledger on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from faulty_s3 import BUCKET, KEY, REGION, faulty_s3
from laketier.registry import open_log_source
from laketier.spi import FeatureNotSupported, OffsetsExpired, OffsetsRewritten, TableNotFound
from landing import JSON, all_of, ids, rows


def test_a_landing_zone_in_a_bucket(tmp_path: Path) -> None:
    with faulty_s3() as s3:
        endpoint = f"endpoint_override={s3.url.removeprefix('http://')}&scheme=http&region={REGION}"
        options = {"path": f"s3://{KEY}:{KEY}@{BUCKET}/zone?{endpoint}"}
        for number in range(3):
            s3.client.put_object(Bucket=BUCKET, Key=f"zone/t/{number}.json", Body=b'{"id": %d}\n' % number)
        s3.client.put_object(Bucket=BUCKET, Key="zone/t/_x.json", Body=b"{}")
        with pytest.raises(FeatureNotSupported, match=r"options\.ledger"):
            open_log_source("files", options, name="drop", origin="test")
        options["ledger"] = str(tmp_path)
        source = open_log_source("files", options, name="drop", origin="test")
        assert list(source.source.list_tables()) == ["t"]
        with pytest.raises(TableNotFound) as caught:
            source.open("u", JSON)
        assert f"{KEY}@" not in str(caught.value), "no credentials"
        log = source.open("t", JSON)
        assert ids(log) == [0, 1, 2]
        ledger_file = (tmp_path / "t" / "ledger.json").read_text()
        assert f"{KEY}:{KEY}@" not in ledger_file
        wanted = all_of(log)
        s3.client.put_object(Bucket=BUCKET, Key="zone/t/1.json", Body=b'{"id": 100}\n')
        with pytest.raises(OffsetsRewritten, match=r"1\.json"):
            rows(log, wanted)
        s3.client.delete_object(Bucket=BUCKET, Key="zone/t/1.json")
        with pytest.raises(OffsetsExpired, match=r"1\.json"):
            rows(log, wanted)


def test_a_key_that_no_file_system_can_open_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with faulty_s3() as s3:
        endpoint = f"endpoint_override={s3.url.removeprefix('http://')}&scheme=http&region={REGION}"
        options = {"path": f"s3://{KEY}:{KEY}@{BUCKET}/zone?{endpoint}", "ledger": str(tmp_path)}
        for number, key in enumerate(["1.json", "/2.json", "x//3.json", "x/4.json"], 1):
            s3.client.put_object(Bucket=BUCKET, Key=f"zone/t/{key}", Body=b'{"id": %d}\n' % number)
        log = open_log_source("files", options, name="drop", origin="test").open("t", JSON)
        assert ids(log) == [1, 4]
    told = [record.message for record in caplog.records if "two slashes" in record.message]
    assert len(told) == 2, told


def test_a_key_that_ends_in_a_slash_is_told_to_be_none_of_a_file(tmp_path: Path) -> None:
    """It is listed as a file, and not found: the table's owner looked in vain for who had deleted it."""
    with faulty_s3() as s3:
        endpoint = f"endpoint_override={s3.url.removeprefix('http://')}&scheme=http&region={REGION}"
        options = {"path": f"s3://{KEY}:{KEY}@{BUCKET}/zone?{endpoint}", "ledger": str(tmp_path)}
        for number, key in enumerate(["1.json", "2.json/"], 1):
            s3.client.put_object(Bucket=BUCKET, Key=f"zone/t/{key}", Body=b'{"id": %d}\n' % number)
        log = open_log_source("files", options, name="drop", origin="test").open("t", JSON)
        with pytest.raises(OffsetsExpired, match="its key ends in a slash") as told:
            rows(log, all_of(log))
        ((_, [gone]),) = told.value.gone.items()
        assert gone[1] == gone[0] + 1, "on-expired: skip passes over it alone"
