"""Files that lie there before there is a table: a folder of Parquet, as any tool leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.spi import AdoptedTable, Feature, TablePath
from laketier_conformance.expect import NotShown, expect, refused
from laketier_conformance.lake import Lake, Table, batch
from laketier_conformance.outside import everything, local_folder, sibling, touched

BESIDE = "beside"


@dataclass(frozen=True)
class LyingFiles:
    """``folder``: where the table ``name`` would be. It is found by the folder of a table of the same database."""

    lake: Lake
    name: str
    folder: Path

    @classmethod
    def of(cls, lake: Lake, name: str = "lying") -> LyingFiles:
        """An empty folder. Raises `FeatureNotSupported` of a format that takes none, and `NotShown` where the folder of
        a name is not to be found."""
        lake.storage.adoption()
        beside = lake.create(name=f"db.{BESIDE}")
        home = local_folder(beside.info.location)
        folder = None if home is None else sibling(home, BESIDE, name)
        if folder is None:
            raise NotShown(Feature.ADOPTION, "the suite can't tell where the folder of a table is")
        folder.mkdir()
        return cls(lake, f"db.{name}", folder)

    @property
    def path(self) -> TablePath:
        """Of the table."""
        return TablePath.parse(self.name)

    @property
    def table(self) -> Table:
        """The table, once there is one."""
        return self.lake.table(self.name)

    def put(self, file: str, ids: Sequence[int]) -> Path:
        """Rows of the suite's own schema."""
        return self.put_table(file, pa.Table.from_batches([batch(ids)]))

    def put_table(self, file: str, rows: pa.Table) -> Path:
        """Any rows, in a file at a path below the folder."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return path

    def adopt(self, **more: Any) -> AdoptedTable:
        """As a process would that knows nothing."""
        return self.lake.storage.adoption().adopt(self.path, **more)

    def refuses(self, error: type[Exception] | tuple[type[Exception], ...], doing: str, **more: Any) -> None:
        """It ends in ``error``, and nothing was made, changed or deleted."""
        before, listed = self.everything(), self.tables()
        with refused(error, doing):
            self.adopt(**more)
        self.stays(before, f"{doing}, which is refused")
        expect(self.tables(), listed, f"the tables of the database after {doing}, which is refused")

    def tables(self) -> list[str]:
        """Those of the database."""
        return [str(path) for path in self.lake.storage.catalog().list_tables("db")]

    def everything(self) -> Mapping[str, object]:
        """All that lies in the folder."""
        return {path: state for path, state in everything(self.folder).items() if path != str(self.folder)}

    def stays(self, before: Mapping[str, object], after: str) -> None:
        """The folder is as it was, names and dates and sizes. ``after`` says what was done."""
        expect(touched(before, self.everything()), [], f"what is new, gone or other in the folder after {after}")

    def keeps(self, before: Mapping[str, object], after: str) -> None:
        """Each file that lay there does so now, and nobody wrote to it. Metadata may have come."""
        files = {path: state for path, state in before.items() if Path(path).suffix}
        now = {path: state for path, state in self.everything().items() if path in files}
        expect(touched(files, now), [], f"files of others that are gone or other after {after}")
