"""Rounds and collections by processes whose clocks are days off: libfaketime shifts all of a process, libraries too.

``python -m laketier_verification.clocks`` goes through all combinations for each format and prints what became of them.
"""
