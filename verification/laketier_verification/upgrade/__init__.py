"""Two versions of laketier, one after the other and at once, on the same tables: the former one is a commit of this
repository, in a checkout of its own, with the libraries of this environment.

``python -m laketier_verification.upgrade COMMIT`` walks there and back, and prints what became of each step.
"""
