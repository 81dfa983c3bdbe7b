"""Logs of JSON lines, as a source for laketier."""
