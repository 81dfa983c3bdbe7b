"""What a plugin names, and what it does not."""

from __future__ import annotations

import pytest

from laketier.spi import (
    FULL,
    Feature,
    FeatureNotSupported,
    Features,
    WriteMode,
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
