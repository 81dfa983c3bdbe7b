"""Bytes become Arrow, or a bad record: JSON, CSV, Avro, Protobuf and Arrow IPC, by one rule for every source; it may
use pyarrow, `laketier.spi`, `laketier.kit`, `laketier.config` and each format's own library, and knows no source, no
table and no engine."""
