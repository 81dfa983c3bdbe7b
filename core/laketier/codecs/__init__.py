"""Bytes from outside become Arrow, or a bad record: JSON, CSV, Avro, Protobuf and Arrow IPC, by one rule for every
source. It may use pyarrow, `laketier.spi` and each format's own library, and knows no source, no table and no
engine."""
