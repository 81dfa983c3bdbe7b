"""A format's own write result in whole rounds: it is published, and discarded, as what its writer made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.tiering import RoundOutcome, TieringRound, write_task

SCHEMA = pa.schema([("id", pa.int64())])


class CountedTable(kit.ManifestTable):
    layout: ClassVar = kit.ManifestLayout(
        format="counted", folder="_counted", attempt_of=lambda path: path.removesuffix(".counted")
    )
    features: ClassVar = {spi.Feature.UPSERT: spi.FULL}

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class CountedResult(spi.WriteResult):
    """With the sum of each column, and a checksum."""

    sums: tuple[tuple[str, int], ...] = ()
    checksum: bytes = b""


@dataclass
class Writer(spi.LakeWriter[CountedResult]):
    table: spi.TableInfo
    attempt: str
    numbers: list[int] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return Path(self.table.location) / f"{self.attempt}.counted"

    def write(self, batch: pa.RecordBatch) -> None:
        self.numbers += batch["id"].to_pylist()

    def complete(self) -> CountedResult:
        self.path.write_text(repr(self.numbers))
        file = spi.StagedFile(self.path.name, len(self.numbers), self.path.stat().st_size)
        sums = (("id", sum(self.numbers)),)
        return CountedResult.of(self.table, self.attempt, (file,), sums=sums, checksum=b"\x00\xff")

    def abort(self) -> None:
        self.path.unlink(missing_ok=True)


class Committer(kit.ManifestCommitter):
    """Remembers what it was given."""

    published: ClassVar[list[spi.WriteResult]] = []
    discarded: ClassVar[list[spi.WriteResult]] = []

    def publish(self, state, results: Sequence[spi.WriteResult], watermark):  # type: ignore[no-untyped-def]
        self.published.extend(results)
        return super().publish(state, results, watermark)

    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        self.discarded.extend(results)
        super().discard(results)


@dataclass(frozen=True)
class Factory(spi.LakeTieringFactory[CountedResult]):
    table: spi.TableInfo

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        return Writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> Committer:  # type: ignore[override]
        return Committer(CountedTable(Path(self.table.location)), context)

    @property
    def write_result_serializer(self) -> spi.SimpleVersionedSerializer[CountedResult]:
        return spi.DataclassSerializer(CountedResult)


@pytest.fixture
def factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Factory:
    monkeypatch.setattr(Committer, "published", [])
    monkeypatch.setattr(Committer, "discarded", [])
    catalog = kit.ManifestCatalog(CountedTable, tmp_path)
    path = spi.TablePath("db", "t")
    return Factory(catalog.create_table(path, spi.TableDescriptor(SCHEMA, primary_key=("id",))))


def message(factory: Factory, *numbers: int, replaced: Sequence[str] = ()) -> bytes:
    context = spi.WriterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT)
    return write_task(factory, [pa.record_batch({"id": numbers}, schema=SCHEMA)], context, replaced)


def commit(factory: Factory, epoch: int, *messages: bytes) -> RoundOutcome:
    token = spi.Token("p", "run", epoch)
    tiering = TieringRound(factory, token=token, mode=spi.WriteMode.UPSERT)
    tiering.begin()
    return tiering.commit_messages(messages).outcome


def test_the_committer_publishes_what_the_writer_made(factory: Factory) -> None:
    assert commit(factory, 0, message(factory, 1, 2), message(factory, 4)) is RoundOutcome.PUBLISHED
    assert [type(each) for each in Committer.published] == [CountedResult] * 2
    assert [each.sums for each in Committer.published] == [(("id", 3),), (("id", 4),)]  # type: ignore[attr-defined]
    replaced = Committer.published[0].files[0].path
    assert commit(factory, 1, message(factory, 5, replaced=[replaced])) is RoundOutcome.PUBLISHED
    last = Committer.published[-1]
    assert isinstance(last, CountedResult)
    assert (last.replaced, last.sums, last.checksum) == ((replaced,), (("id", 5),), b"\x00\xff")


def test_the_committer_discards_what_the_writer_made(factory: Factory) -> None:
    """A replay whose files must not stay."""
    assert commit(factory, 0, message(factory, 1)) is RoundOutcome.PUBLISHED
    there = set(Path(factory.table.location).glob("*.counted"))
    assert commit(factory, 0, message(factory, 1)) is RoundOutcome.ALREADY_THERE
    [discarded] = Committer.discarded
    assert isinstance(discarded, CountedResult)
    assert discarded.sums == (("id", 1),)
    assert set(Path(factory.table.location).glob("*.counted")) == there


def test_a_subclass_without_its_serializer_is_refused_by_the_task(factory: Factory) -> None:
    """On the executor, where its author sees why; the staged file is deleted."""

    class Forgetful(Factory):
        @property
        def write_result_serializer(self) -> spi.SimpleVersionedSerializer[CountedResult]:
            return spi.LakeTieringFactory.write_result_serializer.fget(self)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(spi.SerializationError, match="Override the serializer"):
        message(Forgetful(replace(factory.table)), 1)
    assert not list(Path(factory.table.location).glob("*.counted"))
