"""How much one record, line, block or file may be or become before it is refused: more than any honest one."""

from __future__ import annotations

MIB = 1024 * 1024
RECORD_BYTES = 64 * MIB
"""Of one record or line as it is read."""
BLOCK_BYTES = 256 * MIB
"""Of one block or page that a file is made of, once it is expanded."""
EXPANSION = 1000
"""So many times its size a compressed file may become; counted from `EXPANSION_FROM` on."""
EXPANSION_FROM = 1024 * MIB
SCHEMA_BYTES = 16 * MIB
"""Of the schema that a file begins with."""
SCHEMA_DEPTH = 64
"""So deep types may be nested."""
SCHEMA_COLUMNS = 10_000
"""So many columns a schema from outside may become, those that are inside of others counted each time they are there:
types that name each other become any number."""
DECIMAL_SCALE = 76
"""No further from 0 a decimal's scale may be: its widest type has so many digits."""
ZERO_SIZE_ROWS = 1_000_000
"""So many records may take no bytes at all, in one block."""
CELLS = 10_000_000
"""Rows times columns that are made at once: a record may say nothing of most columns, and takes as much as any."""
