"""Delta Lake tables as a laketier format, written with delta-rs."""
