"""Apache Iceberg tables as a laketier format, written with pyiceberg."""
