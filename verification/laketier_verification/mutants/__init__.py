"""Breaks correct code in small ways, one at a time, and asks which test notices.

`operators` lists the edits of a function, `source` makes mutants of them, `patching` puts one into this process and
those that it starts, `loop` runs the tests that reach it. `python -m laketier_verification.mutants TARGET` begins here.
"""
