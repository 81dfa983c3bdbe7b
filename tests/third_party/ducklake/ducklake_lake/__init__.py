"""The lake format ducklake, for laketier."""
