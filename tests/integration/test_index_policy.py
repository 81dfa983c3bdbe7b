"""Policies that a table carries, changed after it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.table_policies import INDEXES, change_policy, policies_of_table, remove_policy
from laketier.registry import Lake
from laketier.spi import ConfigError, FeatureNotSupported, SetProperty, StorageError, TableInfo
from laketier_verification.lakes import append, lake_at

pytest.importorskip("laketier_lance")

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
WORDS: dict[str, Any] = {"column": "text", "kind": "inverted"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lake_at(tmp_path, "lance")
    append(lake, pa.RecordBatch.from_pydict({"id": [1, 2], "text": ["lake", "river"]}, schema=SCHEMA), epoch=0)
    return lake


def call(lake: Lake, *words: str) -> Result:
    where = ["-f", lake.config.format, "-w", str(lake.config.warehouse)]
    return CliRunner().invoke(app, ["index", words[0], "db.t", *words[1:], *where])


def own(lake: Lake) -> list[Any]:
    found: list[Any] = json.loads(lake.load_table().descriptor.properties.get(INDEXES, "[]"))
    return found


def test_a_policy_is_given_kept_changed_and_taken_away(lake: Lake) -> None:
    done = call(lake, "policy", "words", "--to", "column=text", "--to", "kind=inverted", "--to", "max-unindexed-rows=1")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("words (not built): column = text, kind = inverted")
    assert (
        call(lake, "optimize", "--table-policies", "--processes", "1").stdout == "words: create (2 rows and no index)\n"
    )
    done = call(
        lake, "policy", "words", "--to", "max-segments=2", "--to", "memory=96 MiB", "--default", "max-unindexed-rows"
    )
    assert done.exit_code == 0, done.output
    (policy,) = policies_of_table(lake.load_table())
    assert (policy.max_segments, policy.resources.memory, policy.max_unindexed_rows) == (2, 96 << 20, 100_000)
    told = call(lake, "policy", "--json")
    assert json.loads(told.stdout)["policies"][0]["index"] == "built"
    other = call(lake, "policy", "words", "--to", "options.stem=false")
    assert other.stdout.startswith("words (other settings)")
    assert "laketier index create --replace" in other.stderr
    assert call(lake, "policy", "words", "--remove").exit_code == 0
    assert own(lake) == []
    assert [each.name for each in lake.indexer(lake.load_table()).indexes()] == ["words"], "the index stays"
    assert call(lake, "policy").stdout == "no policies\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["words", "--to", "column=txt", "--to", "kind=inverted"], "Did you mean 'text'"),
        (["words", "--to", "column=text", "--to", "kind=invertd"], "Did you mean 'inverted'"),
        (["words", "--to", "column=id", "--to", "kind=inverted"], "holds int64"),
        (["words", "--to", "kind=inverted"], "column must be set"),
        (
            ["words", "--to", "column=text", "--to", "kind=inverted", "--to", "options.stemm=true"],
            "Did you mean 'stem'",
        ),
        (["words", "--to", "column=text", "--to", "kind=inverted", "--to", "memory=1 B"], "96 MiB"),
        (["words", "--to", "column=text", "--to", "kind=inverted", "--to", "name=other"], "keeps the name"),
        (["words", "--to", "column=text", "--to", "kind=inverted", "--to", "max-segment=3"], "max-segments"),
        (["words", "--to", "column"], "not NAME=VALUE"),
        (["words", "--default", "memory"], "has no 'memory'"),
        (["idss", "--remove"], "Did you mean 'ids'"),
        (["ids", "--remove", "--to", "max-segments=2"], "goes with no change"),
        (["--to", "max-segments=2"], "no index is named"),
        (["words"], "no policy of 'words'"),
        (["more", "--to", "column=id", "--to", "kind=btree"], "ids and more are of one kind"),
    ],
)
def test_what_does_not_fit_changes_nothing(lake: Lake, words: list[str], says: str) -> None:
    change_policy(lake, "ids", {"column": "id", "kind": "btree"})
    before = lake.load_table().snapshot_id
    done = call(lake, "policy", *words)
    assert isinstance(done.exception, ConfigError), done.output
    assert says in str(done.exception)
    assert lake.load_table().snapshot_id == before


def test_nothing_is_refused_after_the_commit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes were opened after it: the command failed, and the policy stayed."""

    def refuse(_: object) -> None:
        raise StorageError("the indexes can't be read")

    before = lake.load_table().snapshot_id
    monkeypatch.setattr("laketier_lance.indexer.LanceIndexer.indexes", refuse)
    done = call(lake, "policy", "words", "--to", "column=text", "--to", "kind=inverted")
    assert isinstance(done.exception, StorageError), done.output
    assert (lake.load_table().snapshot_id, own(lake)) == (before, [])


def test_two_that_change_policies_at_once_both_do(lake: Lake) -> None:
    def meanwhile(lake: Lake, table: TableInfo, policy: IndexPolicy) -> None:
        if not own(lake):
            change_policy(lake, "ids", {"column": "id", "kind": "btree"}, check=lambda *_: None)

    change_policy(lake, "words", WORDS, check=meanwhile)
    assert sorted(each["name"] for each in own(lake)) == ["ids", "words"]
    assert [each.spec.name for each in remove_policy(lake, "ids")] == ["words"]
    assert lake.state(lake.load_table()).watermark("p") is not None, "no watermark is lost by it"


def test_a_table_without_rows_may_get_a_policy(tmp_path: Path) -> None:
    empty = lake_at(tmp_path, "lance", "db.empty")
    append(empty, pa.RecordBatch.from_pydict({"id": [], "text": []}, schema=SCHEMA), epoch=0)
    assert len(change_policy(empty, "words", WORDS)) == 1
    with pytest.raises(ConfigError, match="no column 'txt'"):
        change_policy(empty, "others", {**WORDS, "column": "txt"})


def test_a_format_that_changes_no_properties_refuses(tmp_path: Path) -> None:
    plain = lake_at(tmp_path, "localfile", "db.plain")
    append(plain, pa.RecordBatch.from_pydict({"id": [1], "text": ["x"]}, schema=SCHEMA), epoch=0)
    with pytest.raises(FeatureNotSupported, match="localfile does not support set-property"):
        change_policy(plain, "words", WORDS)
    with pytest.raises(FeatureNotSupported, match="localfile does not support set-property"):
        plain.alter_table(SetProperty("a", "b", None))
