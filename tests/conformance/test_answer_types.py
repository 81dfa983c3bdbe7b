"""An answer of another type than the SPI says is told by the method's name, and not by an error of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier import spi
from laketier_conformance import answer_types
from laketier_conformance.lake import Lake

PROMISED = [
    (contract, name)
    for contract in answer_types.CONTRACT
    for name, hint in answer_types.promised(contract).items()
    if hint is not type(None) and name != "deserialize"  # whatever was serialized
]
LISTS = [pair for pair in PROMISED if "Sequence" in answer_types.named(answer_types.promised(pair[0])[pair[1]])]


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    answer_types.WRONG.clear()
    yield
    answer_types.WRONG.clear()


def answering(contract: type, name: str, answer: object) -> Any:
    """An object of a class of the SPI, one method or property of which answers this."""

    def method(self: object, *_: object, **__: object) -> object:
        return answer

    member: Any = property(method) if isinstance(vars(contract)[name], property) else method
    made = type("Made", (contract,), {name: member})
    made.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    return made()


def noted(contract: type, name: str, answer: object) -> list[str]:
    plugin = answering(contract, name, answer)
    answer_types.watch(plugin)
    found = getattr(plugin, name)
    assert (found if isinstance(vars(contract)[name], property) else found(1, start=2)) is answer
    return answer_types.WRONG


def test_all_that_an_author_implements_is_watched() -> None:
    """A class of the SPI that has methods which another one answers."""
    named = {name for name in dir(spi) if name.startswith("Lake") and isinstance(getattr(spi, name), type)}
    plain = {"LakeCommitResult", "LakeSplit", "LakeStorageConfig", "LaketierError"}
    assert named - plain <= {contract.__name__ for contract in answer_types.CONTRACT}


@pytest.mark.parametrize(("contract", "name"), PROMISED, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("answer", [object(), b"bytes" * 1000])
def test_each_method_is_named_by_what_it_answers(contract: type, name: str, answer: object) -> None:
    if (name, type(answer)) == ("serialize", bytes):
        answer = "text"
    [said] = noted(contract, name, answer)
    assert said.startswith(f"{contract.__name__}.{name} answers what its contract says: expected the answer to be ")
    assert len(said) < 600


@pytest.mark.parametrize(("contract", "name"), LISTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_generator_is_no_list(contract: type, name: str) -> None:
    """It is empty when it is looked at for the second time."""
    assert "generator" in noted(contract, name, (each for each in ()))[0]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("table_version", None), ("table_version", "7"), ("list_tables", ()), ("handle_bytes", pa.scalar(1).as_py())],
)
def test_what_may_be_is_not_noted(name: str, answer: object) -> None:
    assert noted(spi.LakeCatalog, name, answer) == []


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("location", Path("/x"), "expected location of TableInfo to be str, found PosixPath"),
        ("table_uuid", None, "expected table_uuid of TableInfo to be str, found None"),
        ("spec_id", "0", "expected spec_id of TableInfo to be int, found '0' (str)"),
        ("snapshot_id", True, "expected snapshot_id of TableInfo to be int | None, found True (bool)"),
        ("descriptor", {}, "expected descriptor of TableInfo to be TableDescriptor, found {} (dict)"),
    ],
)
def test_a_field_of_an_answer_has_its_type(field: str, value: object, says: str, tmp_path: Path) -> None:
    info = Lake("localfile", str(tmp_path), {}).create().info
    assert says in noted(spi.LakeCatalog, "load_table", replace(info, **{field: value}))[0]
