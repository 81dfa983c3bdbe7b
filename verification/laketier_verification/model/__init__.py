"""An exhaustive model of the exactly-once protocol: every interleaving of a few drivers with crashes, lost answers and
the commits of others; and what each rule of the protocol is needed for.

``python -m laketier_verification.model`` explores it. `docs/proof/model.md` says what it shows.
"""
