from __future__ import annotations

import inspect
import pickle

import pytest

from laketier.spi import (
    FULL,
    Feature,
    FeatureNotSupported,
    LaketierError,
    Passthrough,
    Refused,
    Secret,
    WriteMode,
    errors,
    require,
    require_mode,
    unsupported,
)

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, LaketierError) and kind is not FeatureNotSupported
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_the_way_from_an_executor(kind: type[LaketierError]) -> None:
    error = kind("what", where="where", why="why", fix="Fix it.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - as engines do
    assert type(again) is kind
    assert str(again) == str(error) == "where: what, because why. Fix it."


def test_a_refused_feature_survives_too() -> None:
    error = FeatureNotSupported("overwrite", format="mine", reason="it can't", fix="Append.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - as engines do
    assert (again.feature, again.format, again.reason) == ("overwrite", "mine", "it can't")
    assert str(again) == "mine does not support overwrite, because it can't. Append."


def test_require() -> None:
    features = {Feature.OVERWRITE: FULL, Feature.UPSERT: unsupported("nobody wrote it")}
    require("mine", features, Feature.OVERWRITE)
    with pytest.raises(FeatureNotSupported, match="because nobody wrote it") as caught:
        require("mine", features, Feature.UPSERT)
    assert caught.value.feature == "upsert"
    with pytest.raises(FeatureNotSupported, match="does not name this feature"):
        require("mine", features, Feature.INDEXING)
    with pytest.raises(ValueError, match="needs a reason"):
        unsupported(" ")


def test_a_write_mode_needs_its_feature() -> None:
    features = {Feature.OVERWRITE: FULL, Feature.UPSERT: unsupported("nobody wrote it")}
    for mode in (WriteMode.APPEND, WriteMode.OVERWRITE):
        require_mode("mine", features, mode)
    with pytest.raises(FeatureNotSupported, match="mine does not support upsert, because nobody wrote it"):
        require_mode("mine", features, WriteMode.UPSERT)


def test_secrets_do_not_show() -> None:
    secret = Secret("hunter2")
    options = Passthrough({"key": "hunter2"})
    for shown in (repr(secret), str(secret), f"{secret}", f"{options}", repr(options)):
        assert "hunter2" not in shown
    assert secret.reveal() == options["key"] == "hunter2"


def test_refusals_are_one_family() -> None:
    names = {kind.__name__ for kind in KINDS if issubclass(kind, Refused)}
    assert names == {
        "Refused", "Fenced", "Stale", "Gap", "TokenMismatch", "WatermarkLost", "RolledBack", "TableChanged",
        "SchemaChanged", "Overtaken", "Collected", "OutsideTable", "StagedFileLost",
    }  # fmt: skip
