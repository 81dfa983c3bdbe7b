"""``python -m laketier_verification.search.model``: how long would a full-text index of a large table take, on paper?

Fed by rates that were measured on two cores, and by two that were not: what an object store gives, and how evenly the
parts end on many executors. Prints a table in Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TERA = 1e12


@dataclass(frozen=True)
class Rates:
    """What was measured, and what was assumed.

    Attributes:
        text_per_core: Bytes of text that one core indexes in a second, reading and writing on a local disk included.
        index_share: The bytes of the index, as part of those of the text.
        efficiency: The speed-up by two workers, divided by two.
        publish: Seconds of the publish on the driver, without any segment.
        publish_per_segment: Seconds more for each segment.
        read_size: Bytes of a read.
        write_size: Bytes of a part of an upload.
        bandwidth: Assumed: bytes per second between an executor and the object store. The time of it is added to that
            of the build, though a library that reads ahead hides most of it.
    """

    text_per_core: float
    index_share: float
    efficiency: float
    publish: float
    publish_per_segment: float
    read_size: float
    write_size: float = 5e6
    bandwidth: float = 500e6


@dataclass(frozen=True)
class Table:
    """What is indexed."""

    documents: int = 500_000_000
    text: float = 7 * TERA


@dataclass(frozen=True)
class Estimate:
    """One build.

    Attributes:
        executors: The executors.
        parts: The parts, which are the segments of the index.
        build: Hours of tokenizing and writing, on all cores at once.
        transfer: Hours that each executor moves bytes from and to the object store.
        publish: Seconds of the publish.
        requests: Requests to the object store.
    """

    executors: int
    parts: int
    build: float
    transfer: float
    publish: float
    requests: float

    @property
    def hours(self) -> float:
        """The whole build, nothing hidden behind anything else."""
        return self.build + self.transfer + self.publish / 3600


MEASURED = Rates(
    text_per_core=17e6,
    index_share=0.45,
    efficiency=0.97,
    publish=0.01,
    publish_per_segment=0.0003,
    read_size=370e3,
)
"""Of English paragraphs: 178 MB of text in 10.4 CPU-seconds of one task, without positions (docs/proof/search.md). Two
tasks took 1.02 to 1.03 times the CPU-seconds of one; that is all that ``efficiency`` knows."""

CORES = 8
PARTS_PER_CORE = 2


def estimate(executors: int, *, cores: int = CORES, table: Table | None = None, rates: Rates = MEASURED) -> Estimate:
    """Model a build.

    Args:
        executors: The number of executors.
        cores: The cores of each, a task on each core.
        table: The table.
        rates: The rates.

    Returns:
        The estimate.
    """
    table = table or Table()
    parts = executors * cores * PARTS_PER_CORE
    even = 1.0 if executors * cores == 1 else rates.efficiency
    build = table.text / (rates.text_per_core * executors * cores * even)
    index = table.text * rates.index_share
    transfer = (table.text + index) / (rates.bandwidth * executors)
    publish = rates.publish + rates.publish_per_segment * parts
    requests = table.text / rates.read_size + index / rates.write_size
    return Estimate(executors, parts, build / 3600, transfer / 3600, publish, requests)


def markdown(executors: Sequence[int] = (1, 2, 4, 8, 16, 32), rates: Rates = MEASURED) -> Iterator[str]:
    """The table, line by line.

    Args:
        executors: The numbers of executors, from the least.
        rates: The rates.

    Yields:
        Its lines.
    """
    yield f"| executors of {CORES} cores | parts | build, h | transfer, h | publish, s | all, h | times as fast |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    first = estimate(executors[0], rates=rates).hours
    for count in executors:
        each = estimate(count, rates=rates)
        yield (
            f"| {count} | {each.parts:,} | {each.build:.1f} | {each.transfer:.1f} | {each.publish:.1f} "
            f"| {each.hours:.1f} | {first / each.hours:.1f} |"
        )


def main() -> None:
    """Print the table."""
    print("\n".join(markdown()))


if __name__ == "__main__":
    main()
