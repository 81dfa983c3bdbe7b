"""What each lane and each format costs, beside Spark's own writer and the bare libraries: `make bench`."""
