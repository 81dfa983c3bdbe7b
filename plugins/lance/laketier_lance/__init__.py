"""Lance datasets as a laketier format, written with pylance."""
