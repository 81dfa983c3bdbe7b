"""A process that lives over epochs, and offers the writer of each a place for files that stay open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from laketier.spi import FeatureNotSupported, OpenDataFile, OpenFilesSlot, WriterInitContext, new_attempt_id
from laketier.tiering import RoundResult, TieringRound, write_task
from laketier.tiering.open_files import finish_open_files
from laketier_conformance.harness import Harness
from laketier_conformance.lake import QUICK, Lake, Table, batch, ids_of, token


def tables(lake: Lake, harness: Harness) -> Iterator[Table]:
    """A new one under the format's own options, and one under each set of the harness's: some may ask for files that
    stay open."""
    for number, given in enumerate(({}, *harness.option_sets)):
        under = replace(lake, options={**lake.options, **given})
        yield under.create(name=f"db.living{number}")


@dataclass(frozen=True)
class Living:
    """One process of a pipeline."""

    table: Table
    pipeline: str = "p"
    slot: OpenFilesSlot = field(default_factory=OpenFilesSlot)

    @property
    def context(self) -> WriterInitContext:
        """For the writer of an attempt."""
        return WriterInitContext(new_attempt_id(), open_files=self.slot)

    def append(self, epoch: int, ids: Sequence[int] | None = None) -> RoundResult:
        """A whole round of its one task. Without ``ids``, of the epoch's own."""
        factory = self.table.factory
        tiering = TieringRound(factory, token=token(epoch, self.pipeline), policy=QUICK)
        tiering.begin()
        rows = ids_of(epoch) if ids is None else ids
        context = replace(self.context, attempt=new_attempt_id(tiering.attempts_after))
        return tiering.commit_messages([write_task(factory, [batch(rows)] if rows else [], context)])

    def end(self) -> None:
        """No epoch follows: what is open is finished."""
        finish_open_files(self.table.factory, self.slot, ending=True)


def left_open(table: Table) -> Sequence[OpenDataFile]:
    """What the table tells of files that are open. None of a format without maintenance."""
    try:
        return table.lake.storage.maintenance(table.info).open_files()
    except FeatureNotSupported:
        return ()
