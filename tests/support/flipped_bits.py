"""Read a Parquet file with one bit of another value, a thousand times: ``python flipped_bits.py FILE``. It ends with
0 where each read ended in rows or in `CorruptTable`. A process of its own, as pyarrow may end it."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path

from laketier.kit.parquet_reader import naming_damage, open_parquet, read_batches
from laketier.spi import CorruptTable

FLIPS = 1_000


def flip_bits(content: bytes) -> None:
    """Two of three are in the footer."""
    draw = random.Random(7)
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    for number in range(FLIPS):
        place = len(content) - 1 - draw.randrange(footer if number % 3 else len(content))
        bit = 1 << draw.randrange(8)
        damaged = content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]
        try:
            with naming_damage("rows.parquet"), open_parquet(io.BytesIO(damaged)) as file:
                for _ in read_batches(file, file.schema_arrow.names):
                    pass
        except (CorruptTable, MemoryError):
            pass
        except BaseException as error:
            raise SystemExit(f"bit {bit} of byte {place}: {error!r}") from error


if __name__ == "__main__":
    flip_bits(Path(sys.argv[1]).read_bytes())
