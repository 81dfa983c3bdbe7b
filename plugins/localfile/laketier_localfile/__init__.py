"""Plain Parquet files, published an epoch at a time, as a laketier format."""
