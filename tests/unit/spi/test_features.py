"""What a plugin names, and what it does not."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from laketier.config import load_config
from laketier.registry import naming_commands, naming_format
from laketier.spi import (
    FULL,
    Feature,
    FeatureNotSupported,
    Features,
    LakeCatalog,
    LakeMaintenance,
    LakeSource,
    LakeStorage,
    LakeTieringFactory,
    OrphanFile,
    TableDescriptor,
    TableInfo,
    TablePath,
    WriteMode,
    WriteResult,
    require,
    require_mode,
    support_of,
    unknown_features,
    unsupported,
)


def test_a_feature_that_is_not_named_is_unsupported_and_says_so() -> None:
    assert not support_of({}, Feature.UPSERT).full
    with pytest.raises(
        FeatureNotSupported, match="mine does not support upsert, because the plugin does not name this"
    ):
        require_mode("mine", {}, WriteMode.UPSERT)


def test_a_feature_may_be_named_by_its_text() -> None:
    features: Features = {"upsert": FULL, "overwrite": unsupported("nobody wrote it"), Feature.TIME_TRAVEL: FULL}
    require("mine", features, Feature.UPSERT)
    require("mine", features, Feature.TIME_TRAVEL)
    with pytest.raises(FeatureNotSupported, match="because nobody wrote it"):
        require("mine", features, Feature.OVERWRITE)


def test_what_only_a_newer_laketier_knows_is_told_apart() -> None:
    features: Features = {"upsert": FULL, "teleport": FULL, "antigravity": unsupported("nobody wrote it")}
    assert unknown_features(features) == ("antigravity", "teleport")
    assert unknown_features({Feature.UPSERT: FULL}) == ()


class BareMaintenance(LakeMaintenance):
    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        raise AssertionError

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        raise AssertionError


class BareStorage(LakeStorage):
    def catalog(self) -> LakeCatalog:
        raise AssertionError

    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[WriteResult]:
        raise AssertionError

    def source(self, table: TableInfo) -> LakeSource:
        raise AssertionError


TABLE = TableInfo(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])), "uuid", "/w/db/t", 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: BareStorage().indexer(TABLE),
        lambda: BareStorage().searcher(TABLE),
        lambda: BareStorage().adoption(),
        lambda: BareStorage().maintenance(TABLE),
        lambda: BareMaintenance().repair(),
        lambda: BareMaintenance().expire(retention=1, keep=1, delete=False),
        lambda: BareStorage().history(TABLE),
        lambda: BareStorage().changes(TABLE),
        lambda: BareStorage().feed(TABLE),
    ],
)
def test_the_refusals_of_base_classes_name_the_format_and_no_class(call: Callable[[], object]) -> None:
    with pytest.raises(FeatureNotSupported, match=r"^the format does not support ") as caught:
        call()
    assert "Bare" not in str(caught.value)
    with pytest.raises(FeatureNotSupported, match=r"^mine does not support ") as caught, naming_format("mine"):
        call()
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - as Spark does
    assert (again.format, str(again)) == ("mine", str(caught.value))


def test_a_format_that_is_named_keeps_its_name() -> None:
    with pytest.raises(FeatureNotSupported, match=r"^theirs does not support ") as caught, naming_format("mine"):
        require("theirs", {}, Feature.UPSERT)
    assert caught.value.format == "theirs"


def test_an_entrance_names_the_format() -> None:
    config = load_config({"lake.format": "mine", "lake.warehouse": "/w", "lake.table": "db.t"}, formats=("mine",))
    with pytest.raises(FeatureNotSupported, match=r"^mine does not support indexing"), naming_commands(config):
        BareStorage().indexer(TABLE)
